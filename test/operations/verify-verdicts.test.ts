import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { readPublication } from '#publications/read-publication.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { filesAt, folderOf } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  type Comparison,
  compareFile,
  comparePublication,
  tampered,
} from '../support/verification/compare-verdicts.ts';

/** Tampered copies of each file and of the publication; `VERDICT_COPIES=100` compares many. */
const COPIES = Number(process.env['VERDICT_COPIES'] ?? 4);
const SEED = 7;

/**
 * Verdicts that may differ, each with the reason:
 * - a damaged container is named by this service, with the place of the damage; the reader, which looks for a manifest only, finds none in
 *   what it can follow.
 */
function isExplained({ ours, wasm, why: [own] }: Comparison): boolean {
  return ours === 'unreadable' && wasm === 'none' && /^(?:RIFF|BMFF|ID3|FLAC)_/.test(own);
}

function assertSame(comparison: Comparison, change: string): void {
  const { ours, wasm, why } = comparison;
  assert.ok(ours === wasm || isExplained(comparison), `${change}: ${ours} here, ${wasm} there (${why.join('; ')})`);
}

const home = temporaryFolder();
const FILES: Readonly<Record<string, { readonly options: string; readonly mediaType: string }>> = {
  'last.mp4': { options: '-c:v libx264 -c:a aac', mediaType: 'video/mp4' },
  'first.mp4': { options: '-c:v libx264 -c:a aac -movflags +faststart', mediaType: 'video/mp4' },
  'fragmented.mp4': { options: '-c:v libx264 -c:a aac -movflags frag_keyframe+empty_moov', mediaType: 'video/mp4' },
  'film.mov': { options: '-c:v libx264 -c:a aac', mediaType: 'video/quicktime' },
  'sound.m4a': { options: '-vn', mediaType: 'audio/mp4' },
  'film.avi': { options: '-c:v mpeg4 -c:a mp3', mediaType: 'video/avi' },
  'sound.wav': { options: '-vn', mediaType: 'audio/wav' },
  'sound.mp3': { options: '-vn', mediaType: 'audio/mpeg' },
  'sound.flac': { options: '-vn', mediaType: 'audio/flac' },
};

function makeMedia(name: string, options: string): Buffer {
  const sources = '-v error -y -f lavfi -i testsrc2=s=160x90:r=10:d=2 -f lavfi -i sine=d=2';
  execFileSync('ffmpeg', [...sources.split(' '), ...options.split(' '), name], { cwd: home });
  return readFileSync(join(home, name));
}

describe('the verdict of the WASM reader', () => {
  for (const [name, { options, mediaType }] of Object.entries(FILES)) {
    test(`is the verdict on ${name}, and on tampered copies of it`, async () => {
      const source = makeMedia(name, options);
      const format = formatOf(source);
      assert.ok(format !== undefined);
      const signed = await signBytes(format, source);
      const untouched = await compareFile(name, signed, mediaType, join(home, 'case'));
      assert.deepEqual([untouched.ours, untouched.wasm], ['valid', 'valid']);
      assert.equal((await compareFile(name, source, mediaType, join(home, 'case'))).ours, 'none');
      for (let round = 0; round < COPIES; round += 1) {
        const { bytes, change } = tampered(signed, new SeededRandom(SEED, round));
        assertSame(await compareFile(name, bytes, mediaType, join(home, 'case')), change);
      }
    });
  }

  test('is the verdict on a publication, and on tampered copies of it', async () => {
    const dash = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
    const files = Object.fromEntries(Object.entries(dash).map(([path, bytes]) => [path, Buffer.from(bytes)]));
    const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
    const { renditions } = await readPublication(folderOf(files), patterns, new AbortController().signal);
    const signed = await signAsOthers(files, renditions, { levels: 1 });
    const untouched = await comparePublication(signed, renditions, join(home, 'publication'));
    assert.deepEqual([untouched.ours, untouched.wasm], ['valid', 'valid']);
    const paths = renditions.flatMap(({ init, fragments }) => [init, ...fragments].map(({ path }) => path));
    for (let round = 0; round < COPIES; round += 1) {
      const random = new SeededRandom(SEED, round);
      const path = random.pick(paths);
      const { bytes, change } = tampered(signed[path] as Buffer, random);
      const comparison = await comparePublication({ ...signed, [path]: bytes }, renditions, join(home, 'publication'));
      assertSame(comparison, `${path}, ${change}`);
    }
  });
});
