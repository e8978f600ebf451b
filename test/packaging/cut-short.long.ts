import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { probeMedia } from '#packaging/probing/probe-media.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm, SECONDS } from '../support/media/make-film.ts';
import { MemorySource } from '../support/memory-source.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const film = join(place, 'film.mp4');
const { signal } = new AbortController();

before(() => makeFilm(place));

function made(file: string, options: string): Buffer {
  ffmpeg(place, ['-i', film], `${options} ${file}`);
  return readFileSync(join(place, file));
}

const probe = (file: string, bytes: Buffer) => probeMedia(new MemorySource(bytes), file, signal);

/** Returns the offset of the last box of a type. */
function lastBox(bytes: Buffer, type: string): number {
  return bytes.lastIndexOf(type, undefined, 'latin1') - 4;
}

describe('a file that is cut short', () => {
  test('between two fragments is known by its segment index', async () => {
    const bytes = made('indexed.mp4', '-map 0:v -c copy -movflags +frag_keyframe+empty_moov+global_sidx+skip_trailer');
    await assert.rejects(probe('indexed.mp4', bytes.subarray(0, lastBox(bytes, 'moof'))), { name: 'BrokenMedia' });
    assert.equal((await probe('indexed.mp4', bytes))?.streams.length, 1);
  });

  test('between two fragments is doubted where it says how long it is', async () => {
    const folder = join(place, 'stated');
    mkdirSync(folder);
    const bytes = made('fragmented.mp4', '-map 0:v -c copy -movflags +frag_keyframe+empty_moov+skip_trailer');
    writeFileSync(join(folder, 'film.mp4'), withMehd(bytes.subarray(0, lastBox(bytes, 'moof')), SECONDS * 1000));
    assert.deepEqual((await packageInput(folder)).reasons, ['FRAGMENTS_END_EARLY']);
    await assert.rejects(
      packageInput(folder, { strict: true }),
      (error: unknown) => error instanceof AppError && error.reason === 'PACKAGING_WARNED',
    );
    assert.deepEqual((await probe('film.mp4', withMehd(bytes, SECONDS * 1000)))?.warnings, []);
  });

  for (const [file, options, reason] of [
    ['talk.aac', '-map 0:a:0 -c copy', 'FRAME_CUT_SHORT'],
    ['talk.mp3', '-map 0:a:0 -c:a libmp3lame -write_xing 0 -id3v2_version 0', 'FRAME_CUT_SHORT'],
    ['film.ts', '-map 0:v -map 0:a:0 -c copy', 'PACKET_CUT_SHORT'],
  ] as const) {
    test(`in the middle of its last bytes is doubted: ${file}`, async () => {
      const bytes = made(file, options);
      const whole = await probe(file, bytes);
      assert.deepEqual(whole?.warnings, []);
      assert.ok(Math.abs((whole?.streams[0]?.durationSeconds ?? 0) - SECONDS) < 0.1);
      const cut = await probe(file, bytes.subarray(0, -10));
      assert.equal(cut?.warnings[0]?.reason, reason);
    });
  }

  test('is not suspected of being so for the tag at its end', async () => {
    const bytes = made('tagged.mp3', '-map 0:a:0 -c:a libmp3lame -write_xing 0 -id3v2_version 0 -write_id3v1 1');
    const probed = await probe('tagged.mp3', bytes);
    assert.deepEqual(probed?.warnings, []);
    assert.ok(Math.abs((probed?.streams[0]?.durationSeconds ?? 0) - SECONDS) < 0.1);
  });
});

test('MP3 behind a torn frame is found, and packaged with the same packets', async () => {
  const folder = join(place, 'torn');
  mkdirSync(folder);
  const bytes = made('clean.mp3', '-map 0:a:0 -c:a libmp3lame -write_xing 0 -id3v2_version 0');
  writeFileSync(join(folder, 'talk.mp3'), Buffer.concat([Buffer.alloc(6000, 'garbage'), bytes]));
  const { outputPath } = await packageInput(folder);
  const packets = packetHashes(joinRendition(join(outputPath, 'audio/und_mp3')));
  assert.deepEqual(packets, packetHashes(join(place, 'clean.mp3')));
});

/** Puts a `mehd` box, in milliseconds, at the head of the `mvex` box of an init segment that has none. */
function withMehd(bytes: Buffer, durationMs: number): Buffer {
  const mvex = bytes.indexOf('mvex', 0, 'latin1') - 4;
  const moov = bytes.indexOf('moov', 0, 'latin1') - 4;
  const mehd = Buffer.alloc(16);
  mehd.writeUInt32BE(16);
  mehd.write('mehd', 4);
  mehd.writeUInt32BE(durationMs, 12);
  const widened = Buffer.concat([bytes.subarray(0, mvex + 8), mehd, bytes.subarray(mvex + 8)]);
  for (const at of [mvex, moov]) widened.writeUInt32BE(widened.readUInt32BE(at) + 16, at);
  return widened;
}
