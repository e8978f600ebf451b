import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { riff } from '#formats/riff/riff.ts';
import { mediaFolder, signBytes } from '../../support/judges/file-judges.ts';
import { makeMedia } from '../../support/media/make-media.ts';
import { memorySource } from '../../support/memory-bytes.ts';
import { riffChunk } from '../../support/verification/file-forgeries.ts';
import { verdictOn } from '../../support/verification/forged-files.ts';

const { signal } = new AbortController();
const folder = mediaFolder();

function u32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, index * 4);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

const list = (type: string, ...chunks: readonly Buffer[]): Buffer =>
  riffChunk('LIST', Buffer.concat([Buffer.from(type), ...chunks]));

/** An AVI by its chunks, and whether its indexes lead into its last chunk. */
async function leadsIntoLast(...chunks: readonly Buffer[]): Promise<boolean> {
  const body = Buffer.concat([Buffer.from('AVI '), ...chunks]);
  const file = Buffer.concat([Buffer.from('RIFF'), u32(body.length), body]);
  const length = chunks.at(-1)?.length ?? 0;
  const source = memorySource(file);
  const layout = await riff.readLayout(source, signal);
  return (await layout.leadsInto?.({ offset: file.length - length, length }, source, signal)) === true;
}

const first = riffChunk('00wb', Buffer.alloc(20));
const last = riffChunk('C2PA', Buffer.alloc(100));
const headers = list('hdrl');
/** The distance of the first chunk of media from the type of its list. */
const FROM_LIST = 4;
const MOVIE_AT = 12 + headers.length + 8;

describe('an index of an AVI leads into a chunk', () => {
  const movie = list('movi', first);
  const entry = (offset: number, sizeBytes: number): Buffer =>
    Buffer.concat([Buffer.from('00wb'), u32(0, offset, sizeBytes)]);
  const lastAt = (index: Buffer): number => movie.length + index.length + 8 - 8;

  test('by idx1, which players count from the first chunk of media', async () => {
    const honest = riffChunk('idx1', entry(FROM_LIST, 20));
    assert.equal(await leadsIntoLast(headers, movie, honest, last), false);
    const index = riffChunk(
      'idx1',
      Buffer.concat([entry(FROM_LIST, 20), entry(lastAt(riffChunk('idx1', Buffer.alloc(32))), 50)]),
    );
    assert.equal(await leadsIntoLast(headers, movie, index, last), true);
    const absolute = riffChunk(
      'idx1',
      Buffer.concat([entry(MOVIE_AT + FROM_LIST, 20), entry(MOVIE_AT + lastAt(index), 50)]),
    );
    assert.equal(await leadsIntoLast(headers, movie, absolute, last), true);
  });

  test('by an index of OpenDML, of media or of indexes', async () => {
    const indexOf = (base: number): Buffer =>
      Buffer.concat([Buffer.from([2, 0, 0, 1]), u32(1), Buffer.from('00wb'), u64(base), u32(0), u32(8, 20)]);
    const withHeaders = (base: number): Buffer[] => [
      list('hdrl', list('strl', riffChunk('indx', indexOf(base)))),
      movie,
    ];
    const size = Buffer.concat(withHeaders(0)).length;
    assert.equal(await leadsIntoLast(...withHeaders(12), last), false);
    assert.equal(await leadsIntoLast(...withHeaders(12 + size), last), true);

    const superIndex = (at: number): Buffer =>
      Buffer.concat([Buffer.from([4, 0, 0, 0]), u32(1), Buffer.from('00wb'), u32(0, 0, 0), u64(at), u32(32, 1)]);
    const nested = (at: number, base: number): Buffer[] => [
      list('hdrl', list('strl', riffChunk('indx', superIndex(at)))),
      list('movi', first, riffChunk('ix00', indexOf(base))),
    ];
    const [head, media] = nested(0, 0) as [Buffer, Buffer];
    const at = 12 + head.length + 12 + first.length;
    assert.equal(await leadsIntoLast(...nested(at, 12), last), false);
    assert.equal(await leadsIntoLast(...nested(at, 12 + head.length + media.length), last), true);
  });
});

test('an AVI whose index was made to lead into its manifest is invalid', async () => {
  makeMedia(folder, '-f lavfi -i sine=r=8000:d=1 -c:a pcm_s16le index.avi'.split(' '));
  const file = readFileSync(join(folder, 'index.avi'));
  const stateOf = async (bytes: Buffer): Promise<string> =>
    (await verdictOn('index.avi', { 'index.avi': await signBytes(riff, bytes) }, folder)).state;
  assert.equal(await stateOf(file), 'valid');
  const prepared = Buffer.from(file);
  const index = prepared.lastIndexOf('idx1', undefined, 'latin1');
  const movieAt = prepared.indexOf('movi', 0, 'latin1');
  const entryAt = index + 8 + 16 * 2;
  // The manifest comes to stand behind the last chunk.
  prepared.writeUInt32LE(file.length + 100 - movieAt, entryAt + 8);
  assert.equal(await stateOf(prepared), 'invalid');
});
