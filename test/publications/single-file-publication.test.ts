import assert from 'node:assert/strict';
import { readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ByteSource } from '#bytes/byte-source.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import { openLocalFile } from '#inputs/local/local-file.ts';
import { describeParent } from '#operations/ingredients.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import type { InitLayout } from '#publications/fragments/init-layout.ts';
import { publicationFolder } from '#publications/publication-folder.ts';
import { verifyAsIngredient } from '#publications/verify-as-ingredient.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
const anywhere = { roots: undefined, protectedPaths: [] };
const dir = temporaryFolder();

/** A file with a manifest that does not bind fragments, of which an init segment and a fragment are byte ranges. */
const manifestBox = c2paUuidBox('manifest', Buffer.alloc(64));
const genuine = Buffer.concat([manifestBox, Buffer.from('0000000c6d6461740a0b0c0d', 'hex')]);
const initLength = manifestBox.length;
const init = { path: 'film.mp4', range: { offset: 0, length: initLength } };
const fragment = { path: 'film.mp4', range: { offset: initLength, length: genuine.length - initLength } };

/** The ingredient of that publication; the file system tells changes of the file only where it is `pinned`. */
async function ingredientOf(t: TestContext, { pinned }: { readonly pinned: boolean }) {
  const path = join(dir, `film-${pinned}.mp4`);
  writeFileSync(path, genuine);
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  const scratch = new ScratchSpace({ dir, dataDir: dir }, { jobId: `job-${pinned}`, inputIndex: 0, attempt: 1 });
  t.after(() => scratch.remove());
  const folder = publicationFolder({
    name: 'film',
    files: [{ path: 'film.mp4', sizeBytes: genuine.length }],
    async open() {
      const opened = await openLocalFile(path, 'film.mp4', anywhere, signal);
      const shared = { ...opened, name: opened.name, sizeBytes: opened.sizeBytes, localPath: path };
      const read: typeof opened.read = (target, offset, stop) => opened.read(target, offset, stop);
      return pinned ? opened : { ...shared, read, pin: () => Promise.resolve(false), close: () => opened.close() };
    },
  });
  const inits = [{ manifest: { offset: 0, length: initLength } } as InitLayout];
  const read = { folder, publication: { renditions: [{ init, fragments: [fragment] }] }, inits };
  const context = {
    signal,
    scratch,
    reader: createFragmentReader(),
    trust: NO_TRUST_LISTS,
    progress: () => undefined,
    describeParent: (source: ByteSource) => describeParent(source, { signal, scratch }),
  };
  const { ingredient } = await verifyAsIngredient(read, context);
  assert(ingredient.kind === 'file');
  return { ingredient, path };
}

test('a file that all parts lie in is copied where the file system does not tell its changes', async (t) => {
  const { ingredient, path } = await ingredientOf(t, { pinned: false });
  writeFileSync(path, Buffer.alloc(genuine.length));
  assert.deepEqual(readFileSync(ingredient.path), genuine);
});

test('a file that all parts lie in is refused where it was altered after it was verified', async (t) => {
  const { ingredient, path } = await ingredientOf(t, { pinned: true });
  await ingredient.checkUnchanged?.(signal);
  writeFileSync(path, Buffer.alloc(genuine.length));
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  await assert.rejects(async () => ingredient.checkUnchanged?.(signal), { reason: 'SOURCE_CHANGED' });
});
