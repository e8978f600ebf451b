import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { createFragmentReader } from '#provenance/fragment-reader.ts';
import { folderAt } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm, temporaryFolder } from '../support/publications/make-publication.ts';
import { signFolder } from '../support/publications/sign-folder.ts';

const { signal } = new AbortController();

describe('the fragment reader', async () => {
  const folder = temporaryFolder();
  const made = folderAt(makeFfmpegDash(makeFilm(folder), join(folder, 'dash')));
  const { files, renditions } = await signFolder(made, { playlist: '*.mpd', init: '*init*', frag: '*.m4s' });
  const [{ init, fragments }] = renditions as [{ init: string; fragments: readonly string[] }];
  const initBytes = files[init] as Buffer;
  const fragmentBytes = files[fragments[0] as string] as Buffer;
  const reader = createFragmentReader();

  test('accepts what was signed, and tells its validation results', async () => {
    await reader.readBack(initBytes, fragmentBytes, 'name', signal);
    const results = await reader.validationResults(initBytes, fragmentBytes, null, signal);
    assert.ok(results?.activeManifest?.success.some(({ code }) => code === 'assertion.bmffHash.match'));
  });

  test('reads as many at once as it says, and ends its threads when one is given up', async () => {
    const checks = Array.from({ length: reader.maxConcurrency }, () =>
      reader.readBack(initBytes, fragmentBytes, 'name', signal),
    );
    await Promise.all(checks);
    const abort = new AbortController();
    const given = reader.readBack(initBytes, fragmentBytes, 'name', abort.signal);
    abort.abort(new Error('given up'));
    await assert.rejects(given, /given up/);
    await reader.readBack(initBytes, fragmentBytes, 'name', signal);
  });

  test('refuses a changed fragment, and an init segment without a manifest', async () => {
    const changed = Buffer.from(fragmentBytes);
    changed.writeUInt8((changed.at(-1) as number) ^ 1, changed.length - 1);
    const source = await made.open(init, signal);
    const unsigned = Buffer.alloc(source.sizeBytes);
    await source.read(unsigned, 0, signal);
    for (const [first, second] of [
      [initBytes, changed],
      [unsigned, fragmentBytes],
    ] as const) {
      await assert.rejects(
        reader.readBack(first, second, 'name', signal),
        (error) => error instanceof AppError && error.reason === 'OUTPUT_PART_INVALID',
      );
    }
    assert.equal(await reader.validationResults(unsigned, fragmentBytes, null, signal), null);
  });
});
