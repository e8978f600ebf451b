import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { unlistedStreams } from '#packaging/probing/transport-streams.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { MemorySource } from '../support/memory-source.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const place = temporaryFolder();
const { signal } = new AbortController();
let bytes: Buffer;

before(() => {
  makeFilm(place);
  ffmpeg(place, ['-i', 'film.mp4'], '-map 0 -c copy film.ts');
  ffmpeg(place, ['-i', 'film.mp4'], '-map 0 -c copy -mpegts_m2ts_mode 1 film.m2ts');
  bytes = readFileSync(join(place, 'film.ts'));
});

const unlisted = (content: Buffer, pids: readonly number[]) => unlistedStreams(new MemorySource(content), pids, signal);

describe('the streams of a transport stream', () => {
  test('are told of where a demuxer did not list them', async () => {
    assert.deepEqual(await unlisted(bytes, [256, 257, 258]), []);
    assert.equal((await unlisted(bytes, [256, 258])).length, 1);
    assert.equal((await unlisted(readFileSync(join(place, 'film.m2ts')), [])).length, 3);
  });

  test('are read in bounded time from whatever bytes', async () => {
    const damaged = fc.array(fc.tuple(fc.nat(1000), fc.nat(255)), { minLength: 1, maxLength: 20 }).map((changes) => {
      const copy = Buffer.from(bytes.subarray(0, 4000));
      for (const [at, value] of changes) copy[at] = value;
      return copy;
    });
    const noise = fc.uint8Array({ maxLength: 1000 }).map((content) => Buffer.from(content));
    await fc.assert(
      fc.asyncProperty(fc.oneof(damaged, noise), async (content) => {
        assert.ok((await unlisted(content, [])).length < 1000);
      }),
      { numRuns: 500 },
    );
  });
});
