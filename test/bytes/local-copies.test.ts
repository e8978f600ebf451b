import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openOwnFile } from '#bytes/file-source.ts';
import { LocalCopies } from '#bytes/local-copies.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { MemorySource } from '../support/memory-source.ts';

const never = new AbortController().signal;
let dir: string;
let scratch: ScratchSpace;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'attestream-local-copies-'));
  scratch = new ScratchSpace(
    { dir: join(dir, 'scratch'), dataDir: '/data' },
    { jobId: 'j', inputIndex: 0, attempt: 1 },
  );
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** Folder of remote files. */
function remoteFolder(source: MemorySource): SourceFolder {
  return {
    name: 'folder',
    files: [{ path: 'film.mp4', sizeBytes: source.sizeBytes }],
    open: () => Promise.resolve(source),
  };
}

describe('local copies of a folder', () => {
  test('are made once for all requests, and removed when they are released', async () => {
    const remote = new MemorySource(Buffer.from('a film'));
    const copies = new LocalCopies(remoteFolder(remote), scratch);
    const [first, second] = await Promise.all([copies.of('film.mp4', never), copies.of('film.mp4', never)]);
    assert.equal(first, second);
    assert.equal(remote.bytesRead, remote.sizeBytes);
    assert.equal(readFileSync(first.localPath, 'utf8'), 'a film');
    await copies.release();
    assert.equal(existsSync(first.localPath), false);
    await copies.release();
  });

  test('are the files themselves where they are on this host', async () => {
    const path = join(dir, 'film.mp4');
    await writeFile(path, 'a film');
    const folder = { ...remoteFolder(new MemorySource(Buffer.from(''))), open: () => openOwnFile(path, 'film.mp4') };
    const copies = new LocalCopies(folder, scratch);
    assert.equal((await copies.of('film.mp4', never)).localPath, path);
    await copies.release();
    assert.ok(existsSync(path));
    assert.equal(existsSync(join(dir, 'scratch')), false);
  });

  test('leave nothing behind for one that cannot be made', async () => {
    const failure = new Error('the line is dead');
    const remote = new MemorySource(Buffer.alloc(10), { failFrom: 0, failure });
    const copies = new LocalCopies(remoteFolder(remote), scratch);
    await assert.rejects(copies.of('film.mp4', never), failure);
    await copies.release();
    const [space] = readdirSync(join(dir, 'scratch'));
    assert.deepEqual(readdirSync(join(dir, 'scratch', space as string)), []);
  });
});
