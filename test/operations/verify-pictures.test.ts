import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readPictureManifest } from '#formats/picture-manifest.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { shortened } from '../support/verification/file-forgeries.ts';
import { verdictOn } from '../support/verification/forged-files.ts';

// Pictures of other signers, whose manifest stands in segments of JPEG (ISO/IEC 19566-5, annex D).

const folder = temporaryFolder();
const { signal } = new AbortController();
const FFMPEG = '-v error -f lavfi -i testsrc=d=0.04:s=64x48 -frames:v 1 -f mjpeg -';
const picture = execFileSync('ffmpeg', FFMPEG.split(' '));
const [start, end] = [picture.subarray(0, 2), picture.subarray(2)];
const STORE_BYTES = 12_000;
const HEAD_BYTES = 20;

function segment(marker: number, data: Uint8Array): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([head, data]);
}

/** The segments of a store. All but the first repeat the header of its box. */
function segmentsOf(store: Buffer, bytesEach = STORE_BYTES): Buffer[] {
  const segments: Buffer[] = [];
  for (let at = 0; at < store.length; at += bytesEach) {
    const head = Buffer.from('4a50000100000000', 'hex');
    head.writeUInt32BE(segments.length + 1, 4);
    const repeated = at === 0 ? Buffer.alloc(0) : store.subarray(0, 8);
    segments.push(segment(0xeb, Buffer.concat([head, repeated, store.subarray(at, at + bytesEach)])));
  }
  return segments;
}

async function signed(bytesEach = STORE_BYTES): Promise<{ readonly bytes: Buffer; readonly store: Buffer }> {
  const length = segmentsOf(Buffer.alloc(STORE_BYTES), bytesEach).reduce((sum, each) => sum + each.length, 0);
  const hash = [...createHash('sha256').update(start).update(end).digest()];
  const data = { exclusions: [{ start: start.length, length }], name: 'a', alg: 'sha256', hash, pad: [] };
  const store = await makeManifest({ label: 'c2pa.hash.data', data }, STORE_BYTES);
  return { bytes: Buffer.concat([start, ...segmentsOf(store, bytesEach), end]), store };
}

async function stateOf(bytes: Uint8Array): Promise<string> {
  return (await verdictOn('a.jpg', { 'a.jpg': bytes }, folder)).state;
}

describe('a JPEG', () => {
  test('is valid as it was signed, in one segment or in several', async () => {
    for (const bytesEach of [STORE_BYTES, 5_000]) assert.equal(await stateOf((await signed(bytesEach)).bytes), 'valid');
  });

  for (const [what, marker, data] of [
    ['a colour profile', 0xe2, Buffer.alloc(300, 7)],
    ['an orientation', 0xe1, Buffer.from('Exif\0\0MM\0*\0\0\0\x08\0\0', 'latin1')],
    ['a restart interval', 0xdd, Buffer.from([0, 1])],
    ['other JUMBF', 0xeb, Buffer.from('JP\0\x09\0\0\0\x01\0\0\0\x3cfree'.padEnd(68, '\0'), 'latin1')],
  ] as const) {
    test(`is invalid with ${what} between two segments of its manifest`, async () => {
      const { bytes, store } = await signed();
      const other = segment(marker, data);
      const [first, second] = segmentsOf(shortened(store, other.length + HEAD_BYTES), 7_000) as [Buffer, Buffer];
      const forged = Buffer.concat([start, first, other, second, end]);
      assert.equal(forged.length, bytes.length);
      assert.equal(await stateOf(forged), 'invalid');
    });
  }

  test('is invalid with other bytes than zeros behind its store', async () => {
    const { store } = await signed();
    const padded = (byte: number) =>
      Buffer.concat([start, ...segmentsOf(Buffer.concat([shortened(store, 500), Buffer.alloc(500, byte)])), end]);
    assert.equal(await stateOf(padded(7)), 'invalid');
  });

  test('of any bytes has a manifest in one piece, a scattered one, or none', async () => {
    const { bytes } = await signed();
    const edits = fc.array(fc.record({ at: fc.nat(200), byte: fc.nat(255) }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(edits, fc.nat(bytes.length), async (made, size) => {
        const changed = Buffer.from(bytes.subarray(0, size));
        for (const { at, byte } of made) if (at < changed.length) changed[at] = byte;
        for (const mediaType of ['image/jpeg', 'image/png']) {
          const source = memorySource(changed, 'a.jpg');
          const found = await readPictureManifest(mediaType, source, 64 * 1024, signal).catch(
            (error) => error as Error,
          );
          assert.ok(found === null || found === 'scattered' || found instanceof Error || found.store.length <= size);
        }
      }),
    );
  });
});
