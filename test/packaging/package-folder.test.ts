import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { makeFilm, SRT, temporaryFolder } from './make-media.ts';
import { packageInput } from './package-input.ts';
import { joinRendition, packetHashes } from './packets.ts';

const place = temporaryFolder();
const film = join(place, 'film');

before(() => {
  mkdirSync(film);
  makeFilm(film);
  writeFileSync(join(film, 'film.fr.srt'), SRT);
});

describe('packaging a folder', () => {
  test('makes HLS and DASH over the same segments, with the packets of the source', async () => {
    const { outputPath } = await packageInput(film);
    const renditions = { 'video/h264_180p': 'v:0', 'audio/en_aac': 'a:0', 'audio/de_aac': 'a:1' };
    for (const [folder, stream] of Object.entries(renditions)) {
      const packets = packetHashes(joinRendition(join(outputPath, folder)));
      assert.deepEqual(packets, packetHashes(join(film, 'film.mp4'), stream), folder);
    }
    const master = readFileSync(join(outputPath, 'master.m3u8'), 'utf8');
    const mpd = readFileSync(join(outputPath, 'manifest.mpd'), 'utf8');
    for (const folder of Object.keys(renditions)) {
      assert.ok(master.includes(`${folder}/index.m3u8`), folder);
      assert.ok(mpd.includes(`initialization="${folder}/init.mp4"`), folder);
    }
  });
});
