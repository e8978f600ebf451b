import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { hashOutput } from '#publications/verification/verify-output.ts';
import { folderAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { type SignedFolder, signedRenditions, signFolder } from '../support/publications/sign-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
const folder = temporaryFolder();
const made = folderAt(makeFfmpegDash(makeFilm(folder), join(folder, 'dash')));
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*.m4s' };

type Files = Record<string, Buffer>;

function check(files: Files, signed: SignedFolder): Promise<void> {
  return hashOutput(folderOf(files), signedRenditions(signed), signal);
}

async function assertCaught(files: Files, signed: SignedFolder): Promise<void> {
  await assert.rejects(
    check(files, signed),
    (error) => error instanceof AppError && error.reason === 'OUTPUT_PART_INVALID',
  );
}

function flipped(bytes: Buffer, position: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8((bytes[position] as number) ^ 1, position);
  return changed;
}

for (const [row, ballastBytes] of [
  ['leaf row', 16_000],
  ['upper row', 70_000],
] as const) {
  describe(`the second pass, with the ${row} in the manifest`, async () => {
    const signed = await signFolder(made, patterns, ballastBytes);
    const { files, renditions } = signed;
    const all = renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
    const [first, second] = renditions as [SignedFolder['renditions'][0], SignedFolder['renditions'][0]];

    test('agrees with what was signed', async () => {
      await check(files, signed);
    });

    test('catches a flipped byte anywhere in any file', async () => {
      for (const path of all) {
        const bytes = files[path] as Buffer;
        // The file type and the zeros behind a manifest are outside the binding.
        for (const position of [bytes.length - 1, bytes.length >> 1]) {
          const isInit = renditions.some(({ init }) => init === path);
          if (isInit && position !== bytes.length - 1) continue;
          await assertCaught({ ...files, [path]: flipped(bytes, position) }, signed);
        }
      }
    });

    test('catches a swapped pair, a fragment of another rendition, and a missing Merkle box', async () => {
      const [one, two] = first.fragments as [string, string];
      await assertCaught({ ...files, [one]: files[two] as Buffer, [two]: files[one] as Buffer }, signed);
      await assertCaught({ ...files, [one]: files[second.fragments[0] as string] as Buffer }, signed);
      const unsigned = Buffer.from(files[one] as Buffer);
      unsigned.write('x', unsigned.indexOf('merkle\0'), 'latin1');
      await assertCaught({ ...files, [one]: unsigned }, signed);
    });

    test('catches a manifest that differs between init segments', async () => {
      const bytes = files[second.init] as Buffer;
      await assertCaught({ ...files, [second.init]: flipped(bytes, bytes.indexOf('manifest\0') + 200) }, signed);
    });

    test('catches swapped init segments', async () => {
      const swapped = {
        ...files,
        [first.init]: files[second.init] as Buffer,
        [second.init]: files[first.init] as Buffer,
      };
      await assertCaught(swapped, signed);
    });
  });
}
