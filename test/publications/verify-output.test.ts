import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { createFragmentReader, type FragmentReader } from '#provenance/official-reader.ts';
import { verifyOutput } from '#publications/verification/verify-output.ts';
import { folderAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signedRenditions, signFolder } from '../support/publications/sign-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
const folder = temporaryFolder();
const made = folderAt(makeFfmpegDash(makeFilm(folder), join(folder, 'dash')));
const signed = await signFolder(made, { playlist: '*.mpd', init: '*init*', frag: '*.m4s' });

/** A folder that counts what is open. */
function counting(output: SourceFolder): Pick<SourceFolder, 'open'> & { opened: number; closed: number } {
  const counted = {
    opened: 0,
    closed: 0,
    open: async (path: string, stop: AbortSignal) => {
      const source = await output.open(path, stop);
      counted.opened += 1;
      const close = async () => {
        counted.closed += 1;
        await source.close();
      };
      return { ...source, close };
    },
  };
  return counted;
}

function check(output: Pick<SourceFolder, 'open'>, reader: FragmentReader): Promise<void> {
  const renditions = signedRenditions(signed);
  return verifyOutput({ output, renditions, reader, fragments: 'all', onProgress: () => undefined }, signal);
}

test('a publication that agrees with its manifest passes both checks', async () => {
  const output = counting(folderOf(signed.files));
  await check(output, createFragmentReader());
  const parts = signed.renditions.reduce((sum, { fragments }) => sum + fragments.length + 1, 0);
  assert.deepEqual([output.opened, output.closed], [2 * parts, 2 * parts]);
});

test('what the official reader refuses fails the publication though our own pass agrees', async () => {
  const refusing: FragmentReader = {
    ...createFragmentReader(),
    readBack: (_init, _fragment, file) => Promise.reject(new AppError('OUTPUT_PART_INVALID', { file, problem: 'x' })),
  };
  await assert.rejects(check(folderOf(signed.files), refusing), AppError);
});

test('when one check fails, the other has ended before the failure is told', async () => {
  const [path] = signed.renditions[0]?.fragments ?? [];
  const bytes = Buffer.from(signed.files[path as string] as Buffer);
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  let ended = 0;
  const slow: FragmentReader = {
    ...createFragmentReader(),
    maxConcurrency: 1,
    readBack: async (_init, _fragment, _name, stop) => {
      if (!stop.aborted) await once(stop, 'abort');
      await setImmediate();
      ended += 1;
      throw stop.reason;
    },
  };
  const output = counting(folderOf({ ...signed.files, [path as string]: bytes }));
  await assert.rejects(
    check(output, slow),
    (error) => error instanceof AppError && error.reason === 'OUTPUT_PART_INVALID',
  );
  assert.equal(ended, 1);
  assert.equal(output.closed, output.opened, 'nothing is open any more');
});
