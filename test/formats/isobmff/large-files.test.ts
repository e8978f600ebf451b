import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { AppError } from '#errors/app-error.ts';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import {
  box,
  chunkOffsetsIn,
  co64,
  FTYP,
  findAll,
  fullBox,
  largeBox,
  moovWith,
  stco,
  trak,
  u32,
  u64,
} from '../../support/media/movie-bytes.ts';
import { outputRange, type Piece, sparseSource } from './sparse-source.ts';

const never = new AbortController().signal;
const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const BOX_AROUND = 45;
const STBL = ['moov', 'trak', 'mdia', 'minf', 'stbl'];

/** Returns the header of an `mdat` box with content of the given size. */
function mdatHeader(contentBytes: number): Buffer {
  return Buffer.concat([u32(1), Buffer.from('mdat'), u64(contentBytes + 16)]);
}

describe('a file that passes 4 GiB when it is signed', () => {
  /** The moov of a movie whose media ends just below 4 GiB, as it is in the output. */
  async function signedMoov(moovOf: (mediaEnd: number) => Buffer, manifestSizeBytes: number) {
    const end = 2 ** 32 - 1;
    const sizeBytes = moovOf(end).length;
    const content = end - FTYP.length - sizeBytes - 16;
    const moov = moovOf(end);
    const source = sparseSource([FTYP, moov, mdatHeader(content), content]);
    assert.equal(source.sizeBytes, end);
    const layout = await isobmff.readLayout(source, never);
    const { plan } = isobmff.planEmbedding(layout, manifestSizeBytes);
    const start = FTYP.length + BOX_AROUND + manifestSizeBytes;
    const moovEnd = outputSizeBytes(plan) - content - 16;
    return { bytes: await outputRange(plan, source, start, moovEnd), moov, shift: moovEnd - FTYP.length - moov.length };
  }

  test('gets 64-bit chunk offsets, and boxes around them that say so', async () => {
    const offsets = (end: number) => [1000, end - 5000, end - 100];
    const { bytes, shift } = await signedMoov(
      (end) => box('moov', trak({ tables: [stco(...offsets(end)), box('stsz')] }), box('udta')),
      1000,
    );
    const [table] = findAll(bytes, ...STBL, 'co64');
    assert.ok(table);
    assert.equal(shift, BOX_AROUND + 1000 + 3 * 4);
    assert.deepEqual(
      chunkOffsetsIn(table.bytes),
      offsets(2 ** 32 - 1).map((offset) => offset + shift),
    );
    assert.deepEqual(
      bytes,
      box('moov', trak({ tables: [co64(...chunkOffsetsIn(table.bytes)), box('stsz')] }), box('udta')),
    );
  });

  test('keeps 32-bit tables that still fit, but not those that no longer do because others have grown', async () => {
    // A shift of 145 takes only the first table past 4 GiB; that the first grows by 400 takes the second, and so on.
    const moovOf = (end: number) =>
      box(
        'moov',
        trak({ tables: [stco(...Array<number>(100).fill(end - 100))] }),
        trak({ tables: [stco(...Array<number>(100).fill(end - 500))] }),
        trak({ tables: [stco(...Array<number>(100).fill(end - 900))] }),
        trak({ tables: [stco(end - 5000)] }),
      );
    const { bytes, shift } = await signedMoov(moovOf, 100);
    assert.equal(shift, BOX_AROUND + 100 + 3 * 400);
    const grown = findAll(bytes, ...STBL, 'co64').map((table) => chunkOffsetsIn(table.bytes)[0]);
    assert.deepEqual(
      grown,
      [100, 500, 900].map((before) => 2 ** 32 - 1 - before + shift),
    );
    const kept = findAll(bytes, ...STBL, 'stco').map((table) => chunkOffsetsIn(table.bytes));
    assert.deepEqual(kept, [[2 ** 32 - 1 - 5000 + shift]]);
  });

  test('ends however long that goes on', async () => {
    const moovOf = (end: number) =>
      box('moov', ...Array.from({ length: 30 }, (_, index) => trak({ tables: [stco(end - 144 - 4 * index)] })));
    const { bytes } = await signedMoov(moovOf, 100);
    assert.equal(findAll(bytes, ...STBL, 'co64').length, 30);
  });

  test('sizes a moov box with a 64-bit header, too', async () => {
    const moovOf = (end: number) => largeBox('moov', trak({ tables: [stco(end - 10)] }));
    const { bytes, shift } = await signedMoov(moovOf, 100);
    assert.deepEqual(bytes, largeBox('moov', trak({ tables: [co64(2 ** 32 - 11 + shift)] })));
  });

  test('is refused where a 32-bit offset has no wider form', async () => {
    await assert.rejects(
      signedMoov((end) => moovWith(fullBox('saio', 0, u32(1, end - 10))), 100),
      (error: AppError) => error.reason === 'BMFF_OFFSET_OVERFLOW',
    );
  });
});

describe('reading the layout', () => {
  test('of terabytes of media takes two reads', async () => {
    const content = 3000 * GIB;
    const source = sparseSource([FTYP, moovWith(co64(2000 * GIB)), mdatHeader(content), content, box('free')]);
    const layout = await isobmff.readLayout(source, never);
    assert.equal(layout.boxes.length, 4);
    assert.ok(source.readCount <= 4, `${source.readCount} reads`);
  });

  test('of 20,000 small fragments takes one read for many', async () => {
    const fragment: Piece[] = [
      box('moof', box('traf', fullBox('tfhd', 0x020000, u32(1)))),
      box('mdat', Buffer.alloc(4000)),
    ];
    const fragments = Buffer.concat(Array.from({ length: 20_000 }, () => fragment as Buffer[]).flat());
    const source = sparseSource([FTYP, moovWith(), fragments]);
    await isobmff.readLayout(source, never);
    assert.ok(source.readCount <= source.sizeBytes / 200_000, `${source.readCount} reads of ${source.sizeBytes} bytes`);
  });

  test('of large fragments takes one small read for each', async () => {
    const header = Buffer.concat([box('moof', box('traf', fullBox('tfhd', 0x020000, u32(1)))), mdatHeader(5_000_000)]);
    const pieces = Array.from({ length: 200 }, (): Piece[] => [header, 5_000_000]).flat();
    const source = sparseSource([FTYP, moovWith(), ...pieces]);
    await isobmff.readLayout(source, never);
    assert.ok(source.readCount <= 210, `${source.readCount} reads`);
    assert.ok(source.bytesRead <= 200 * 20_000, `${source.bytesRead} bytes`);
  });

  test('refuses tables of gigabytes before it reads them', async () => {
    for (const type of ['moov', 'meta', 'moof']) {
      const header = Buffer.concat([u32(1), Buffer.from(type), u64(2 * GIB + 16)]);
      const source = sparseSource([FTYP, moovWith(), box('mdat'), header, 2 * GIB]);
      await assert.rejects(
        isobmff.readLayout(source, never),
        (error: AppError) => error.reason === 'BMFF_BOX_TOO_LARGE',
      );
      assert.ok(source.bytesRead < 1_000_000, `${source.bytesRead} bytes of ${type}`);
    }
  });

  test('leaves a file type of gigabytes to the plan of a signature, which refuses it', async () => {
    const header = Buffer.concat([u32(1), Buffer.from('ftyp'), u64(2 * GIB + 16)]);
    const source = sparseSource([header, 2 * GIB, moovWith(), box('mdat')]);
    const layout = await isobmff.readLayout(source, never);
    assert.ok(source.bytesRead < 1_000_000, `${source.bytesRead} bytes`);
    assert.throws(
      () => isobmff.planEmbedding(layout, 8),
      (error: AppError) => error.reason === 'BMFF_MEDIA_UNBOUND',
    );
  });

  test('leaves an index of gigabytes to the plan of a signature, which refuses it', async () => {
    const header = Buffer.concat([u32(1), Buffer.from('mfra'), u64(2 * GIB + 16)]);
    const source = sparseSource([FTYP, moovWith(), box('mdat'), header, 2 * GIB]);
    const layout = await isobmff.readLayout(source, never);
    assert.ok(source.bytesRead < 1_000_000, `${source.bytesRead} bytes`);
    assert.throws(
      () => isobmff.planEmbedding(layout, 8),
      (error: AppError) => error.reason === 'BMFF_BOX_TOO_LARGE',
    );
  });

  test('refuses many tables that are too large together', async () => {
    const header = Buffer.concat([u32(100_000_008), Buffer.from('meta')]);
    const source = sparseSource([
      FTYP,
      moovWith(),
      box('mdat'),
      header,
      100_000_000,
      header,
      100_000_000,
      header,
      100_000_000,
    ]);
    await assert.rejects(isobmff.readLayout(source, never), { reason: 'BMFF_BOX_TOO_LARGE' });
  });
});

test('leaves are larger where 4096 of the smallest do not make up the media, and the placeholder knows', async () => {
  const content = 5 * GIB;
  const layout = await isobmff.readLayout(sparseSource([FTYP, moovWith(), mdatHeader(content), content]), never);
  const { plan, binding } = isobmff.planEmbedding(layout, 100);
  assert.equal(plan.hashing.leafSizeBytes, 2 * MIB);
  const leaves = Array.from({ length: 2560 }, (_, index) => Buffer.alloc(32, index));
  const made = binding({ flat: Buffer.alloc(32), leaves }).data['merkle'] as { hashes: number[][] }[];
  const planned = isobmff.placeholderBinding(layout).data['merkle'] as typeof made;
  for (const [map] of [made, planned]) {
    assert.partialDeepStrictEqual(map, { count: 2560, fixedBlockSize: 2 * MIB });
    assert.equal(map?.hashes.length, 2560);
  }
});
