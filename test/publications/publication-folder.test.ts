import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publicationFolder } from '#publications/publication-folder.ts';

const never = new AbortController().signal;
const SIZE_BYTES = 32 * 1024 * 1024;

/** A folder of playlists that take memory only where somebody writes into it. Of those that are opened first, `failures` cannot be read. */
function folderOfSizes(sizeBytes: number, failures = 0) {
  let opened = 0;
  const folder = publicationFolder({
    name: 'folder',
    files: [],
    async open(name) {
      opened += 1;
      const isLost = opened <= failures;
      const read = () => (isLost ? Promise.reject(new Error('the connection was lost')) : Promise.resolve());
      return { name, sizeBytes, read, close: () => Promise.resolve() };
    },
  });
  return { folder, opened: () => opened };
}

test('a playlist is opened once, also by those who read it at once', async () => {
  const { folder, opened } = folderOfSizes(7);
  const [first, second] = await Promise.all([folder.readPlaylist('a', never), folder.readPlaylist('a', never)]);
  assert.equal(first, second);
  assert.equal((await folder.open('a', never)).sizeBytes, 7);
  assert.equal(opened(), 1);
});

test('a file that is too large for a playlist can be opened', async () => {
  const { folder } = folderOfSizes(SIZE_BYTES + 1);
  await assert.rejects(folder.readPlaylist('a', never), { reason: 'PLAYLIST_TOO_LARGE' });
  assert.equal((await folder.open('a', never)).sizeBytes, SIZE_BYTES + 1);
});

test('playlists are refused that have more than 256 MiB together', async () => {
  const { folder } = folderOfSizes(SIZE_BYTES);
  for (let count = 0; count < 8; count += 1) await folder.readPlaylist(String(count), never);
  await assert.rejects(folder.readPlaylist('8', never), { reason: 'PUBLICATION_TOO_LARGE' });
});

test('a playlist that is read again counts once', async () => {
  const { folder } = folderOfSizes(SIZE_BYTES, 8);
  for (let count = 0; count < 8; count += 1) {
    await assert.rejects(folder.readPlaylist('a', never), { message: 'the connection was lost' });
  }
  assert.equal((await folder.readPlaylist('a', never)).length, SIZE_BYTES);
});
