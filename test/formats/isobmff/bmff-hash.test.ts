import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import {
  box,
  boxesOf,
  C2PA_ID,
  FTYP,
  find,
  largeBox,
  moovWith,
  stco,
  u64,
  XMP_ID,
} from '../../support/media/movie-bytes.ts';
import { embed } from '../../support/memory-bytes.ts';

const MIB = 1024 * 1024;
const manifest = Buffer.from('a manifest of no meaning');
const unused = { length: null, data: null, subset: null, version: null, flags: null, exact: null };
const FLAT_EXCLUSIONS = [
  { ...unused, xpath: '/uuid', data: [{ offset: 8, value: [...C2PA_ID] }] },
  { ...unused, xpath: '/ftyp' },
  { ...unused, xpath: '/mfra' },
];

const sha256 = (...parts: Uint8Array[]): number[] => [...createHash('sha256').update(Buffer.concat(parts)).digest()];

describe('the hard binding', () => {
  test('hashes every box that is not excluded, each after its offset, and then the bytes behind the last box', async () => {
    const xmp = box('uuid', XMP_ID, Buffer.from('<x/>'));
    const input = Buffer.concat([
      FTYP,
      xmp,
      moovWith(stco(300)),
      box('free', randomBytes(9)),
      box('mdat', randomBytes(500)),
      box('mfra'),
      Buffer.from('tail'),
    ]);
    const { output, binding } = await embed(isobmff, input, manifest);
    const hashed = boxesOf(output)
      .filter(({ type, offset }) => type !== 'ftyp' && type !== 'mfra' && output.indexOf(C2PA_ID) !== offset + 8)
      .flatMap(({ offset, size }) => [u64(offset), output.subarray(offset, offset + size)]);
    assert.deepEqual(binding, {
      label: 'c2pa.hash.bmff.v3',
      data: {
        exclusions: FLAT_EXCLUSIONS,
        alg: 'sha256',
        hash: sha256(...hashed, Buffer.from('tail')),
        name: 'jumbf manifest',
      },
    });
  });

  test('has a Merkle tree over one large media box, from its byte 16 on', async () => {
    const content = randomBytes(16 * MIB + 8 + 77);
    for (const mdat of [box('mdat', content), largeBox('mdat', content)]) {
      const input = Buffer.concat([FTYP, moovWith(), mdat]);
      const { output, binding } = await embed(isobmff, input, manifest);
      const moov = find(output, 'moov');
      const { offset } = find(output, 'mdat');
      const bound = mdat.subarray(16);
      const leaves = Array.from({ length: 17 }, (_, index) => sha256(bound.subarray(index * MIB, (index + 1) * MIB)));
      assert.deepEqual(binding.data, {
        exclusions: [...FLAT_EXCLUSIONS, { ...unused, xpath: '/mdat', subset: [{ offset: 16, length: 0 }] }],
        alg: 'sha256',
        hash: sha256(u64(moov.offset), moov.bytes, u64(offset), mdat.subarray(0, 16)),
        merkle: [{ uniqueId: 1, localId: 0, count: 17, alg: 'sha256', hashes: leaves, fixedBlockSize: MIB }],
        name: 'jumbf manifest',
      });
    }
  });

  test('is flat for smaller media, and for several media boxes', async () => {
    const small = box('mdat', Buffer.alloc(16 * MIB));
    for (const media of [[small], [small, box('mdat', Buffer.alloc(16 * MIB + 100))]]) {
      const { binding } = await embed(isobmff, Buffer.concat([FTYP, moovWith(), ...media]), manifest);
      assert.equal('merkle' in binding.data, false);
    }
  });
});
