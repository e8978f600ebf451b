import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { readMatroskaTracks } from '#packaging/containers/matroska.ts';
import { BrokenMedia } from '#packaging/probed-file.ts';
import { probeMedia } from '#packaging/probing/probe-media.ts';
import { ffmpeg, makeFilm, SRT } from '../support/media/make-film.ts';
import { MemorySource } from '../support/memory-source.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const place = temporaryFolder();
const { signal } = new AbortController();
let bytes: Buffer;

before(() => {
  makeFilm(place);
  writeFileSync(join(place, 'film.srt'), SRT);
  ffmpeg(
    place,
    ['-i', 'film.mp4', '-i', 'film.srt'],
    '-map 0:v -map 1 -map 1 -c:v copy -c:s:0 subrip -c:s:1 ass -metadata:s:s:0 language=fre film.mkv',
  );
  bytes = readFileSync(join(place, 'film.mkv'));
});

const read = (content: Uint8Array) => readMatroskaTracks(new MemorySource(Buffer.from(content)), signal);

describe('the tracks of Matroska beside audio and video', () => {
  test('are listed with their languages', async () => {
    const { subtitles } = await read(bytes);
    assert.deepEqual(
      subtitles.map(({ codecId, language }) => [codecId, language]),
      [
        ['S_TEXT/UTF8', 'fre'],
        ['S_TEXT/ASS', 'und'],
      ],
    );
  });

  test('have no codec that packaging knows where their ids are names that every object has', async () => {
    const foreign = bytes
      .toString('latin1')
      .replace('S_TEXT/UTF8', 'constructor')
      .replace('V_MPEG4/ISO/AVC', 'constructor\0\0\0\0');
    const probed = await probeMedia(new MemorySource(Buffer.from(foreign, 'latin1')), 'film.mkv', signal);
    assert.deepEqual(
      probed?.streams.map(({ codec, codecId }) => [codec, codecId]),
      [
        [null, 'constructor'],
        [null, 'constructor'],
        ['ass', 'S_TEXT/ASS'],
      ],
    );
  });

  test('are read in bounded time from whatever bytes', async () => {
    const damaged = fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { minLength: 1, maxLength: 20 }).map((changes) => {
      const copy = Buffer.from(bytes.subarray(0, 4000));
      for (const [at, value] of changes) copy[at] = value;
      return copy;
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(damaged, fc.uint8Array({ maxLength: 500 })), async (content) => {
        await read(content).catch((error: unknown) =>
          assert.ok(error instanceof BrokenMedia || error instanceof AppError),
        );
      }),
      { numRuns: 300 },
    );
  });
});
