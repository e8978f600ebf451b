import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import {
  assemble,
  box,
  C2PA_ID,
  c2paBox,
  chunkOffsetsIn,
  co64,
  FTYP,
  find,
  findAll,
  fullBox,
  largeBox,
  moovWith,
  SELF_CONTAINED,
  stco,
  trak,
  u16,
  u32,
  u64,
} from '../../support/media/movie-bytes.ts';
import { embed, refusalOf } from '../../support/memory-bytes.ts';

const manifest = Buffer.concat([u32(100), Buffer.from('jumb'), Buffer.alloc(92, 'm')]);
/** Box header, id, version and flags, purpose, offset: the fields of a manifest box before the manifest. */
const BOX_AROUND = 8 + 16 + 4 + 9 + 8;
const GROWTH = BOX_AROUND + manifest.length;
const STBL = ['moov', 'trak', 'mdia', 'minf', 'stbl'];

async function embedded(input: Buffer, store: Buffer = manifest): Promise<Buffer> {
  return (await embed(isobmff, input, store)).output;
}

/** The four bytes at an offset: chunks are named so. */
function at(bytes: Buffer, offset: number): string {
  return bytes.toString('latin1', offset, offset + 4);
}

function chunksOf(output: Buffer, type = 'stco'): string[] {
  return findAll(output, ...STBL, type).flatMap((table) =>
    chunkOffsetsIn(table.bytes).map((offset) => at(output, offset)),
  );
}

describe('the manifest box', () => {
  test('directly follows ftyp and has the fields that readers expect', async () => {
    const output = await embedded(Buffer.concat([FTYP, moovWith(), box('mdat')]));
    const expected = Buffer.concat([FTYP, c2paBox('manifest', manifest), moovWith(), box('mdat')]);
    assert.deepEqual(output, expected);
  });

  test('is found in all its forms, without the zeros behind the manifest', async () => {
    const padded = Buffer.concat([manifest, Buffer.alloc(50)]);
    const boxes = {
      manifest: c2paBox('manifest', padded),
      original: c2paBox('original', padded),
      'manifest in a large box': largeBox('uuid', C2PA_ID, u32(0), Buffer.from('manifest\0'), u64(0), padded),
    };
    for (const [what, bytes] of Object.entries(boxes)) {
      const input = Buffer.concat([FTYP, moovWith(), box('mdat'), bytes]);
      const { layout } = await embed(isobmff, input, manifest);
      assert.deepEqual(layout.manifest, { offset: input.indexOf(manifest), length: manifest.length }, what);
    }
  });

  test('is replaced at any position, as are updates and Merkle boxes', async () => {
    const update = Buffer.concat([u32(20), Buffer.from('jumbupdate 12')]);
    const input = assemble(
      c2paBox('merkle', Buffer.from('x'), u32()),
      FTYP,
      c2paBox('original', manifest),
      ([, , , , chunk = 0]) => moovWith(stco(chunk + 8)),
      box('mdat', Buffer.from('AAAA')),
      c2paBox('update', update),
    );
    const { layout, output } = await embed(isobmff, input, manifest);
    assert.deepEqual(layout.manifest?.offset, input.indexOf(update));
    const clean = assemble(
      FTYP,
      c2paBox('manifest', manifest),
      ([, , , chunk = 0]) => moovWith(stco(chunk + 8)),
      box('mdat', Buffer.from('AAAA')),
    );
    assert.deepEqual(output, clean);
  });

  test('comes after an ftyp box that is made where there is none, and moved where it is late', async () => {
    const noFtyp = assemble(([, chunk = 0]) => moovWith(stco(chunk + 8)), box('mdat', Buffer.from('AAAA')));
    const late = assemble(
      box('free'),
      ([, , , chunk = 0]) => moovWith(stco(chunk + 8)),
      FTYP,
      box('mdat', Buffer.from('AAAA')),
    );
    for (const input of [noFtyp, late]) {
      const output = await embedded(input);
      assert.equal(findAll(output, 'ftyp').length, 1);
      assert.equal(find(output, 'ftyp').offset, 0);
      assert.equal(find(output, 'uuid').offset, find(output, 'ftyp').bytes.length);
      assert.deepEqual(chunksOf(output), ['AAAA']);
    }
    assert.equal((await embedded(noFtyp)).toString('hex', 0, 20), '0000001466747970717420200000000071742020');
  });
});

/** A `moov` with a track for each of the tables. */
const moovOf = (...tables: readonly Buffer[]): Buffer =>
  box('moov', ...tables.map((table) => trak({ tables: [table] })));

describe('chunk offsets', () => {
  test('move with the media, at any position of the tables', async () => {
    const mdat = box('mdat', Buffer.from('AAAABBBBCCCC'));
    const first = assemble(FTYP, ([, , m = 0]) => moovOf(stco(m + 8, m + 12), co64(m + 16)), mdat);
    const last = assemble(FTYP, mdat, ([, m = 0]) => moovOf(stco(m + 8, m + 12), co64(m + 16)));
    for (const input of [first, last]) {
      const output = await embedded(input);
      assert.deepEqual([...chunksOf(output, 'stco'), ...chunksOf(output, 'co64')], ['AAAA', 'BBBB', 'CCCC']);
    }
  });

  test('move by where they point, when boxes go away between them', async () => {
    const old = c2paBox('manifest', Buffer.alloc(5000));
    const input = assemble(
      FTYP,
      box('mdat', Buffer.from('AAAA')),
      old,
      box('mdat', Buffer.from('BBBB')),
      ([, a = 0, , b = 0]) => moovWith(stco(a + 8, b + 8)),
      old,
      box('mdat', Buffer.from('CCCC')),
      ([, , , , , , c = 0]) => box('moov', trak({ tables: [co64(c + 8)] })),
    );
    const output = await embedded(input);
    assert.deepEqual([...chunksOf(output, 'stco'), ...chunksOf(output, 'co64')], ['AAAA', 'BBBB', 'CCCC']);
    assert.equal(findAll(output, 'uuid').length, 1);
  });

  test('stay 0 where there is no chunk, and past the end where a file was cut', async () => {
    const output = await embedded(
      Buffer.concat([FTYP, moovOf(co64(0, 9999, 2 ** 40), stco(0, 9999, 0xffff_fff0)), box('mdat')]),
    );
    assert.deepEqual(chunkOffsetsIn(find(output, ...STBL, 'co64').bytes), [0, 9999 + GROWTH, 2 ** 40 + GROWTH]);
    assert.deepEqual(chunkOffsetsIn(find(output, ...STBL, 'stco').bytes), [0, 9999 + GROWTH, 0xffff_fff0]);
  });

  test('stay as they are past the numbers that are exact', async () => {
    const table = fullBox('co64', 0, u32(2), Buffer.from('ffffffffffffffff0020000000000001', 'hex'));
    const output = await embedded(Buffer.concat([FTYP, moovWith(table), box('mdat')]));
    assert.deepEqual(find(output, ...STBL, 'co64').bytes, table);
  });

  const alias = fullBox('alis', 0, Buffer.from('other.mov'));
  test('stay as they are in a track whose media is in another file', async () => {
    const tables = [stco(40), fullBox('saio', 0, u32(1, 40))];
    const external = trak({ tables, dataReferences: [SELF_CONTAINED, alias], entries: [['mp4a', 2]] });
    const own = trak({ tables, dataReferences: [SELF_CONTAINED, alias] });
    const output = await embedded(Buffer.concat([FTYP, box('moov', external, own), box('mdat')]));
    const offsets = findAll(output, ...STBL, 'stco').map(({ bytes }) => chunkOffsetsIn(bytes));
    assert.deepEqual(offsets, [[40], [40 + GROWTH]]);
  });

  test('move along in a track whose reference to another file names none', async () => {
    for (const lost of [fullBox('url ', 0), fullBox('alis', 0, Buffer.alloc(4))]) {
      const own = trak({ tables: [stco(40)], dataReferences: [lost] });
      const output = await embedded(Buffer.concat([FTYP, box('moov', own), box('mdat')]));
      assert.deepEqual(chunkOffsetsIn(find(output, ...STBL, 'stco').bytes), [40 + GROWTH]);
    }
  });

  test('are refused in a track whose media is only partly in the file', async () => {
    const mixed = trak({
      tables: [stco(40)],
      dataReferences: [SELF_CONTAINED, alias],
      entries: [
        ['mp4a', 1],
        ['mp4a', 2],
      ],
    });
    assert.equal(
      await refusalOf(isobmff, Buffer.concat([FTYP, box('moov', mixed), box('mdat')])),
      'BMFF_DATA_REFERENCES_MIXED',
    );
  });
});

describe('auxiliary information', () => {
  test('of a sample table is found again, with and without its type, in both versions', async () => {
    const input = assemble(
      FTYP,
      ([, , m = 0]) =>
        moovWith(
          fullBox('saio', 0, u32(2, m + 8, m + 12)),
          fullBox('saio', 0x01000001, Buffer.from('cenc'), u32(0, 1), u64(m + 16)),
        ),
      box('mdat', Buffer.from('AAAABBBBCCCC')),
    );
    const output = await embedded(input);
    const [short, long] = findAll(output, ...STBL, 'saio').map(({ bytes }) => bytes);
    assert.ok(short && long);
    assert.deepEqual(
      [short.readUInt32BE(16), short.readUInt32BE(20)].map((offset) => at(output, offset)),
      ['AAAA', 'BBBB'],
    );
    assert.equal(at(output, Number(long.readBigUInt64BE(24))), 'CCCC');
  });
});

describe('fragments', () => {
  const traf = (tfhdFlags: number, base: Buffer, dataOffset: number) =>
    box(
      'traf',
      fullBox('tfhd', tfhdFlags, u32(1), base),
      fullBox('trun', 1, u32(1, dataOffset)),
      fullBox('saio', 0, u32(1, 50)),
    );

  test('have base data offsets that point to the same media, whatever they are relative to', async () => {
    const input = assemble(
      FTYP,
      moovWith(),
      ([, , moof = 0, m = 0]) =>
        box('moof', traf(1, u64(m), 8), traf(1, u64(moof), m + 12 - moof), traf(1, u64(0), m + 16)),
      box('mdat', Buffer.from('AAAABBBBCCCC')),
    );
    const output = await embedded(input);
    const chunks = findAll(output, 'moof', 'traf').map(({ bytes }) => {
      const base = Number(find(bytes.subarray(8), 'tfhd').bytes.readBigUInt64BE(16));
      return at(output, base + find(bytes.subarray(8), 'trun').bytes.readInt32BE(16));
    });
    assert.deepEqual(chunks, ['AAAA', 'BBBB', 'CCCC']);
    const count = (bytes: Buffer) => findAll(bytes, 'moof', 'traf', 'saio').map((saio) => saio.bytes.readUInt32BE(16));
    assert.deepEqual(count(output), [50, 50, 50], 'these count from the base');
  });

  test('keep everything that counts from themselves', async () => {
    const moof = box('moof', traf(0x020000, Buffer.alloc(0), 100));
    const input = Buffer.concat([FTYP, moovWith(), moof, box('mdat', Buffer.from('AAAA'))]);
    assert.deepEqual(find(await embedded(input), 'moof').bytes, moof);
  });

  test('are found again by the random access box', async () => {
    const tfra = (version: number, ...moofs: number[]) => {
      const number = version === 1 ? u64 : u32;
      const entries = moofs.map((moof) => Buffer.concat([number(7), number(moof), Buffer.from('010101', 'hex')]));
      return fullBox('tfra', version * 2 ** 24, u32(version + 1, 0, 2), ...entries);
    };
    const fragments = [box('moof'), box('mdat'), box('moof'), box('mdat')];
    const input = assemble(FTYP, moovWith(), ...fragments, ([, , first = 0, , second = 0]) =>
      box('mfra', tfra(0, first, second), tfra(1, first, second), fullBox('mfro', 0, u32(200))),
    );
    const output = await embedded(input);
    const moofs = findAll(output, 'moof').map(({ offset }) => offset);
    const [short, long] = findAll(output, 'mfra', 'tfra').map(({ bytes }) => bytes);
    assert.ok(short && long);
    assert.deepEqual([short.readUInt32BE(28), short.readUInt32BE(28 + 11)], moofs);
    assert.deepEqual([long.readBigUInt64BE(32), long.readBigUInt64BE(32 + 19)].map(Number), moofs);
    assert.equal(find(output, 'mfra').bytes.length, find(input, 'mfra').bytes.length);
  });

  test('keep their distances: old C2PA boxes between them become free space', async () => {
    const old = c2paBox('merkle', Buffer.alloc(150_000), u32());
    const pieces = [box('sidx', Buffer.alloc(24)), old, box('moof'), old, box('mdat')];
    const output = await embedded(Buffer.concat([FTYP, moovWith(), ...pieces, old]));
    const blank = box('free', Buffer.alloc(old.length - 8));
    const expected = [FTYP, c2paBox('manifest', manifest), moovWith(), pieces[0], blank, pieces[2], blank, pieces[4]];
    assert.ok(output.equals(Buffer.concat(expected as Buffer[])));
  });
});

describe('items', () => {
  const meta = (version: number, widths: number, ...items: Buffer[]) => {
    const dinf = box(
      'dinf',
      fullBox('dref', 0, u32(2), SELF_CONTAINED, fullBox('url ', 0, Buffer.from('other.mov\0'))),
    );
    const count = version < 2 ? u16(items.length) : u32(items.length);
    return fullBox(
      'meta',
      0,
      fullBox('hdlr', 0, u32(0), Buffer.from('pict'), Buffer.alloc(13)),
      dinf,
      fullBox('iloc', version * 2 ** 24, u16(widths), count, ...items),
    );
  };
  const ilocOf = (bytes: Buffer, ...holder: string[]) => find(bytes, ...holder, 'meta', 'iloc').bytes;

  test('are found again by their base', async () => {
    const item = (base: number) => Buffer.concat([u16(1, 0), u32(base), u16(2), u32(0, 4), u32(4, 4)]);
    const input = assemble(
      FTYP,
      ([, , , m = 0]) => meta(0, 0x4440, item(m + 8)),
      moovWith(),
      box('mdat', Buffer.from('AAAABBBB')),
    );
    const output = await embedded(input);
    assert.equal(at(output, ilocOf(output).readUInt32BE(16 + 4)), 'AAAA');
    assert.deepEqual(ilocOf(output).subarray(24), ilocOf(input).subarray(24), 'what counts from the base stays');
  });

  test('are found again by their extents where there is no base', async () => {
    const item = (offset: number) => Buffer.concat([u16(1, 0, 0, 2), u64(offset), u32(4), u64(offset + 4), u32(4)]);
    const input = assemble(
      FTYP,
      ([, , m = 0]) => box('moov', trak(), meta(1, 0x8400, item(m + 8))),
      box('mdat', Buffer.from('AAAABBBB')),
    );
    const output = await embedded(input);
    const iloc = ilocOf(output, 'moov');
    assert.deepEqual(
      [24, 36].map((position) => at(output, Number(iloc.readBigUInt64BE(position)))),
      ['AAAA', 'BBBB'],
    );
  });

  test('are found again in further metadata: of the file, the movie and a track', async () => {
    const item = (offset: number) => Buffer.concat([u16(1, 0, 1), u32(offset, 4)]);
    const further = (m: number) => box('meco', fullBox('mere', 0, u32(0, 0)), meta(0, 0x4400, item(m + 8)));
    const input = assemble(
      FTYP,
      ([, , , m = 0]) => further(m),
      ([, , , m = 0]) => box('moov', box('trak', trak().subarray(8), further(m)), further(m)),
      box('mdat', Buffer.from('AAAA')),
    );
    const output = await embedded(input);
    for (const holder of [[], ['moov'], ['moov', 'trak']]) {
      assert.equal(at(output, ilocOf(output, ...holder, 'meco').readUInt32BE(22)), 'AAAA');
    }
  });

  test('stay as they are inside the meta box, in other items and in other files', async () => {
    const item = (method: number, reference: number) => Buffer.concat([u32(1), u16(method, reference, 1), u32(50, 4)]);
    const boxes = meta(2, 0x4400, item(1, 0), item(2, 0), item(0, 2));
    const output = await embedded(Buffer.concat([FTYP, boxes, moovWith(), box('mdat', Buffer.alloc(90))]));
    assert.deepEqual(find(output, 'meta').bytes, boxes);
  });

  test('are refused where their numbers cannot be', async () => {
    const input = Buffer.concat([FTYP, meta(0, 0x3440, Buffer.alloc(0)), moovWith(), box('mdat')]);
    assert.equal(await refusalOf(isobmff, input), 'BMFF_BOX_MALFORMED');
  });

  test('may have endless extents of no width, which are not walked', async () => {
    const endless = meta(0, 0x0000, ...Array.from({ length: 20_000 }, () => u16(1, 0, 0xffff)));
    assert.equal(await refusalOf(isobmff, Buffer.concat([FTYP, endless, moovWith(), box('mdat')])), 'accepted');
  });

  test('are refused where there are too many to adjust', async () => {
    const item = Buffer.concat([u16(1, 0, 60_000), Buffer.alloc(240_000, 1)]);
    const input = Buffer.concat([
      FTYP,
      meta(0, 0x4000, ...Array.from({ length: 17 }, () => item)),
      moovWith(),
      box('mdat'),
    ]);
    assert.equal(await refusalOf(isobmff, input), 'BMFF_TOO_MANY_OFFSETS');
  });

  test('and tables, too', async () => {
    const tables = Array<Buffer>(60_000).fill(stco(1));
    const input = Buffer.concat([FTYP, ...Array<Buffer>(4).fill(moovWith(...tables)), box('mdat')]);
    assert.equal(await refusalOf(isobmff, input), 'BMFF_TOO_MANY_OFFSETS');
  });
});

describe('bytes behind the last box', () => {
  const complete = Buffer.concat([FTYP, moovWith(), box('mdat')]);

  test('stays as it is up to 7 bytes', async () => {
    const output = await embedded(Buffer.concat([complete, Buffer.from('tail123')]));
    assert.equal(output.toString('latin1', output.length - 15), '\0\0\0\x08mdattail123');
  });

  test('gets into a box of its own where readers would take it for one', async () => {
    const tag = Buffer.concat([Buffer.from('TAGtitle'), Buffer.alloc(120)]);
    const output = await embedded(Buffer.concat([complete, tag]));
    assert.ok(output.subarray(-136).equals(box('free', tag)));
    assert.ok((await embedded(output)).equals(output), 'and stays there');
  });

  test('may be free space that was cut off', async () => {
    const cut = box('free', Buffer.alloc(100, 'x')).subarray(0, 50);
    assert.ok((await embedded(Buffer.concat([complete, cut]))).subarray(-58).equals(box('free', cut)));
  });

  test('is taken for a box cut short where it looks like one', async () => {
    const cut = box('mdat', Buffer.alloc(200)).subarray(0, 50);
    assert.equal(await refusalOf(isobmff, Buffer.concat([complete, cut])), 'BMFF_BOX_EXCEEDS_PARENT');
    const nothingYet = Buffer.concat([FTYP, moovWith(), Buffer.from('TAGtitle of something')]);
    assert.equal(await refusalOf(isobmff, nothingYet), 'BMFF_BOX_EXCEEDS_PARENT');
  });
});
