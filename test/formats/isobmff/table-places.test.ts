import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Box, parseBoxHeader } from '#formats/isobmff/boxes.ts';
import { strayTableIn } from '#formats/isobmff/table-places.ts';
import { box, fullBox, largeBox, stco, trak, u16, u32 } from '../../support/media/movie-bytes.ts';
import { SeededRandom } from '../../support/seeded-random.ts';

function strayIn(bytes: Buffer): string | null {
  return strayTableIn(new Box('film.mp4', parseBoxHeader(bytes, 0, bytes.length), bytes))?.type ?? null;
}

/** A box with another size in its header. */
function sized(bytes: Buffer, sizeBytes: number): Buffer {
  return Buffer.concat([u32(sizeBytes), bytes.subarray(4)]);
}

const tables = [
  stco(8),
  fullBox('stsc', 0, u32(1, 1, 1, 1)),
  fullBox('stsz', 0, u32(4, 1)),
  fullBox('stts', 0, u32(0)),
];
const own = trak({ tables });
const extends_ = box('mvex', fullBox('trex', 0, u32(1, 1, 0, 0, 0)));
const run = fullBox('trun', 1, u32(1, 100));
const header = fullBox('tfhd', 0, u32(1));
const fragment = (...more: Buffer[]): Buffer =>
  box('moof', fullBox('mfhd', 0, u32(1)), box('traf', header, fullBox('tfdt', 0, u32(0)), run, ...more));
const CONTAINERS = ['wave', 'sinf', 'ilst', 'udta', 'edts', 'gmhd', 'abcd'];

describe('a box that leads to samples', () => {
  test('has its place in a movie and in a fragment', () => {
    assert.equal(strayIn(box('moov', own, trak({ id: 2, tables }), extends_, box('udta', box('name')))), null);
    assert.equal(strayIn(fragment()), null);
  });

  for (const container of CONTAINERS) {
    test(`is stray in "${container}", whatever size it states`, () => {
      const table = tables[0] as Buffer;
      const cut = sized(table, 0x7fff_ffff);
      for (const hidden of [
        table,
        box('stbl', table),
        sized(table, 0),
        largeBox('stco', u32(0)),
        cut,
        box('xxxx', cut),
      ]) {
        const type = hidden.includes('stbl') ? 'stbl' : 'stco';
        assert.equal(strayIn(box('moov', trak({ tables, more: [box(container, hidden)] }))), type);
        assert.equal(strayIn(box('moov', own, box(container, hidden))), type);
        assert.equal(strayIn(box('moov', own, sized(box(container, hidden), 0x7fff_ffff))), type);
      }
      for (const hidden of [run, sized(run, 0), sized(run, 0x7fff_ffff)]) {
        assert.equal(strayIn(fragment(box(container, hidden))), 'trun');
      }
    });
  }

  test('is stray in metadata, behind the fields of a sample entry, and at an odd byte', () => {
    const handler = fullBox('hdlr', 0, u32(0), Buffer.from('mdir'), Buffer.alloc(13));
    const cut = sized(tables[0] as Buffer, 0x7fff_ffff);
    for (const fields of [Buffer.alloc(0), u32(0), Buffer.alloc(12, 'x')]) {
      assert.equal(strayIn(box('moov', own, box('meta', fields, handler, cut))), 'stco');
    }
    const entries = [['mp4a', 1, Buffer.concat([u16(0), cut])]] as const;
    assert.equal(strayIn(box('moov', trak({ tables, entries }))), 'stco');
    assert.equal(strayIn(box('moov', own, box('data', Buffer.alloc(3), tables[0] as Buffer, Buffer.alloc(5)))), 'stco');
  });

  test('is stray where another of its kind belongs', () => {
    assert.equal(strayIn(box('moov', own, box('trex'))), 'trex');
    assert.equal(strayIn(box('moov', own, stco(8))), 'stco');
    assert.equal(strayIn(box('moov', own, box('moof', box('traf')))), 'moof');
    assert.equal(strayIn(box('moof', box('trak'))), 'trak');
    assert.equal(strayIn(box('meta', u32(0), box('stbl'))), 'stbl');
  });

  test('is none in text, nor in what a table at its place holds', () => {
    const named = (...contents: Buffer[]) =>
      box('moov', own, box('udta', box('name', ...contents), box('next', u32(0))));
    for (const text of ['About the trak, the mdia and the stbl', 'minftraffic', 'traffic', 'stco\0']) {
      for (const before of [[], [u32(0)], [u16(text.length, 0)], [u16(text.length, 0x55c4)], [u32(1, 0)]]) {
        assert.equal(strayIn(named(...before, Buffer.from(text))), null, text);
      }
    }
    const likeBox = fullBox('stsz', 0, u32(0, 3, 8), Buffer.from('stbl'), u32(8));
    assert.equal(strayIn(box('moov', trak({ tables: [likeBox] }))), null);
  });

  test('is none in free space, into which recorders turn what they no longer need', () => {
    const trex = fullBox('trex', 0, u32(1, 1, 0, 0, 0));
    assert.equal(strayIn(box('moov', own, box('free', trex))), null);
    assert.equal(strayIn(box('moov', trak({ tables, more: [box('skip', ...tables)] }))), null);
    assert.equal(strayIn(box('moov', own, box('wave', box('free', trex)))), 'trex');
  });

  test('is none in covers', () => {
    const random = new SeededRandom(26);
    const cover = Buffer.from(Uint32Array.from({ length: 2 ** 20 }, () => random.between(0, 2 ** 32 - 1)).buffer);
    const covr = box('covr', box('data', u32(13, 0), cover));
    assert.equal(strayIn(box('moov', own, box('udta', box('meta', u32(0), box('ilst', covr))))), null);
  });
});
