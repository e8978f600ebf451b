import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findPictureManifest } from '#formats/picture-manifest.ts';
import { mutateBytes } from '../fuzz/mutate-bytes.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { riffChunk } from '../support/verification/file-forgeries.ts';
import { boxSegment, jpegSegment } from '../support/verification/signed-pictures.ts';

const { signal } = new AbortController();
const JUMBF_START = Buffer.from('\0\0\0\0jumb\0\0\0\0jumdc2pa', 'latin1');

function bytesOf(random: SeededRandom, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.between(0, 255)));
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const chunk = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length);
  return chunk;
}

function subBlocks(data: Buffer, random: SeededRandom): Buffer {
  const blocks: Buffer[] = [];
  for (let at = 0; at < data.length; ) {
    const block = data.subarray(at, at + random.between(1, 255));
    blocks.push(Buffer.from([block.length]), block);
    at += block.length;
  }
  return Buffer.concat([...blocks, Buffer.alloc(1)]);
}

function segments(store: Buffer, random: SeededRandom): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < store.length; ) {
    const part = store.subarray(at, at + random.between(40, 400));
    parts.push(boxSegment(at === 0 ? part : Buffer.concat([store.subarray(0, 8), part]), parts.length + 1));
    at += part.length;
  }
  return Buffer.concat(parts);
}

function tiff(store: Buffer, other: Buffer, isBig: boolean): Buffer {
  const entries = 8 + other.length;
  const bytes = Buffer.concat([Buffer.alloc(8), other, Buffer.alloc(2 + 24 + 4), store]);
  const number = (value: number, at: number, length: number) =>
    isBig ? bytes.writeUIntBE(value, at, length) : bytes.writeUIntLE(value, at, length);
  bytes.write(isBig ? 'MM' : 'II', 'latin1');
  number(42, 2, 2);
  number(entries, 4, 4);
  number(2, entries, 2);
  for (const [index, [tag, count, value]] of [
    [256, 1, 64],
    [52545, store.length, entries + 30],
  ].entries()) {
    const at = entries + 2 + index * 12;
    number(tag as number, at, 2);
    number(7, at + 2, 2);
    number(count as number, at + 4, 4);
    number(value as number, at + 8, 4);
  }
  return bytes;
}

/** Ways of putting a store into a picture, behind other bytes of the same kind. */
const PICTURES: Readonly<Record<string, (store: Buffer, other: Buffer, random: SeededRandom) => Buffer>> = {
  'image/jpeg': (store, other, random) =>
    Buffer.concat([
      Buffer.from('ffd8', 'hex'),
      jpegSegment(0xe1, other),
      boxSegment(other, 1, 9),
      Buffer.from('ff', 'hex'),
      jpegSegment(0xdb, other),
      segments(store, random),
      jpegSegment(0xda, other),
    ]),
  'image/png': (store, other) =>
    Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), pngChunk('tEXt', other), pngChunk('caBX', store), other]),
  'image/gif': (store, other, random) =>
    Buffer.concat([
      Buffer.from('GIF89a\0\0\0\0\x80\0\0......', 'latin1'),
      Buffer.from('\x21\xfe', 'latin1'),
      subBlocks(other, random),
      Buffer.from('\x21\xff\x0bC2PA_GIF\x01\0\0', 'latin1'),
      subBlocks(store, random),
      Buffer.from('\x2c', 'latin1'),
    ]),
  'image/webp': (store, other) =>
    Buffer.concat([Buffer.from('RIFF....WEBP', 'latin1'), riffChunk('VP8 ', other), riffChunk('C2PA', store)]),
  'image/tiff': (store, other, random) => tiff(store, other, random.chance(0.5)),
};

/** Returns what is found as a manifest; throws where it does not lie in the file. */
async function contentIn(bytes: Buffer, mediaType: string): Promise<Buffer | null> {
  const found = await findPictureManifest(memorySource(bytes), mediaType, signal);
  assert.ok(found !== null);
  for (const { offset, length } of found.elements) assert.ok(offset >= 0 && offset + length <= bytes.length);
  if (found.manifest === null) return null;
  const { offset, length } = found.manifest;
  return found.unwrap(Buffer.from(bytes.subarray(offset, offset + length)));
}

describe('the manifest of a picture', () => {
  for (const [mediaType, wrap] of Object.entries(PICTURES)) {
    test(`is found in ${mediaType}, and in no part of it`, async () => {
      const random = new SeededRandom(7);
      for (let round = 0; round < 100; round += 1) {
        // A chunk of odd size has a pad byte.
        const store = Buffer.concat([JUMBF_START, bytesOf(random, 2 * random.between(10, 900))]);
        const bytes = wrap(store, bytesOf(random, random.between(20, 90)), random);
        assert.deepEqual(await contentIn(bytes, mediaType), store);
        const part = await contentIn(bytes.subarray(0, random.between(0, bytes.length - 1)), mediaType);
        // A cut between two segments, or behind the manifest.
        assert.ok(part === null || store.subarray(0, part.length).equals(part));
      }
    });

    test(`lies in the file, whatever ${mediaType} holds`, async () => {
      const random = new SeededRandom(11);
      const store = Buffer.concat([JUMBF_START, bytesOf(random, 600)]);
      for (let round = 0; round < 2000; round += 1) {
        const seed = wrap(store, bytesOf(random, 40), random);
        await contentIn(mutateBytes(seed, random, seed), mediaType);
      }
    });
  }

  test('is not looked for in other formats', async () => {
    assert.equal(await findPictureManifest(memorySource(Buffer.from('%PDF-1.7')), 'application/pdf', signal), null);
    assert.equal(await findPictureManifest(memorySource(Buffer.alloc(8)), null, signal), null);
  });
});
