import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const folder = join(place, 'webm');

before(() => {
  makeFilm(place);
  mkdirSync(folder);
  const codecs = '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -g 25 -c:a libopus';
  ffmpeg(place, ['-i', 'film.mp4'], `-map 0:v -map 0:a:0 ${codecs} film.webm`);
  ffmpeg(folder, ['-i', '../film.webm'], '-c copy -f dash -dash_segment_type webm -seg_duration 2 manifest.mpd');
});

describe('a publication of WebM segments', () => {
  test('is made anew, with the same packets', async () => {
    const { outputPath, reasons } = await packageInput(folder);
    const film = join(place, 'film.webm');
    assert.deepEqual(packetHashes(joinRendition(join(outputPath, 'video/vp9_180p'))), packetHashes(film, 'v:0'));
    assert.ok(reasons.includes('PUBLICATION_FOUND'), reasons.join());
  });

  test('cannot be signed as it is, and the message says what its segments are', async () => {
    const files = Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
    const { signal } = new AbortController();
    const patterns = { playlist: '*.mpd', init: 'init-*', frag: 'chunk-*' };
    const { renditions } = await readPublication(folderOf(files), patterns, signal);
    await assert.rejects(readInits(folderOf(files), renditions, signal), (error) => {
      assert.ok(error instanceof AppError);
      assert.equal(error.reason, 'SEGMENTS_NEED_PACKAGING');
      return true;
    });
  });
});
