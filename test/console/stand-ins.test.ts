import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import * as cborg from 'cborg';

const CONSOLE = new URL('../../console/', import.meta.url);
const { decode, encode } = await import(new URL('cbor.js', CONSOLE).href);
const { sha256 } = await import(new URL('sha256.js', CONSOLE).href);

describe('what browsers run instead of modules of Node', () => {
  test('hashes files of every length as SHA-256', () => {
    const bytes = Uint8Array.from({ length: 300 }, (_, index) => (index * 151) % 256);
    for (let length = 0; length <= bytes.length; length += 1) {
      const part = bytes.subarray(300 - length);
      assert.deepEqual(Buffer.from(sha256(part)), createHash('sha256').update(part).digest(), `${length} bytes`);
    }
  });

  test('encodes and decodes the lists of a presentation as CBOR of the deterministic form', () => {
    const sizes = [0, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
    const rows = [...sizes.map((size) => ['text/ä.vtt', size, new Uint8Array(32)]), [null, 'x'.repeat(300)]];
    assert.deepEqual(Buffer.from(encode(rows)), Buffer.from(cborg.encode(rows)));
    assert.deepEqual(decode(encode(rows)), rows);
  });

  test('decodes a Merkle box, and refuses one that says something twice or ends too early', () => {
    const box = { uniqueId: 1, localId: 300, location: 0, hashes: [new Uint8Array(32)] };
    assert.deepEqual(decode(cborg.encode(box)), box);
    const twice = Buffer.from('a267 6c6f63616c4964 01 67 6c6f63616c4964 02'.replaceAll(' ', ''), 'hex');
    assert.throws(() => decode(twice), /twice/);
    assert.throws(() => decode(cborg.encode(box).subarray(0, 40)), /too early/);
  });
});
