import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { assertValid, mediaFolder, signBytes } from '../../support/judges/file-judges.ts';
import { movie, packetsOf, samplesOf } from '../../support/media/media-files.ts';
import {
  assemble,
  box,
  boxesOf,
  chunkOffsetsIn,
  FTYP,
  find,
  findAll,
  fullBox,
  largeBox,
  stco,
  trak,
  u32,
} from '../../support/media/movie-bytes.ts';
import { embed, refusalOf } from '../../support/memory-bytes.ts';

const NAME = box('\u00a9nam', Buffer.from('\0\x04\0\0name'));
const FREE = box('free', Buffer.alloc(20));
const MEDIA = Buffer.from('the media');
const manifest = Buffer.from('a manifest');

/** Possible ends of a list of user data: QuickTime ends it with a size of 0, and allows padding. */
const ENDS: Readonly<Record<string, Buffer>> = {
  'a size of 0': u32(0),
  'a byte': Buffer.from([7]),
  'seven bytes': Buffer.from('1234567'),
  'a header of zeros': u32(0, 0),
  'many zeros': Buffer.alloc(101),
  'a size of 0 and something else': Buffer.concat([u32(0), Buffer.from('left over by an editor')]),
  'a size of 5': Buffer.concat([u32(5), Buffer.from('name'), Buffer.alloc(20)]),
  'a 64-bit size of 8': Buffer.concat([u32(1), Buffer.from('name'), u32(0, 8), Buffer.alloc(20)]),
};

/** A movie with a list of user data that ends so, and free space behind its tables. */
function withUserData(end: Buffer): Buffer {
  const moov = (offset: number) => box('moov', trak({ tables: [stco(offset)] }), box('udta', NAME, end));
  return assemble(FTYP, box('mdat', MEDIA), ([, mdat = 0]) => moov(mdat + 8), FREE);
}

describe('trailing bytes of a box', () => {
  for (const [what, end] of Object.entries(ENDS)) {
    test(`are wrapped in a box, because C2PA readers take them for one: ${what}`, async () => {
      const { output } = await embed(isobmff, withUserData(end), manifest);
      const [table] = findAll(output, 'moov', 'trak', 'mdia', 'minf', 'stbl', 'stco');
      const [offset = 0] = chunkOffsetsIn(table?.bytes ?? Buffer.alloc(16));
      assert.equal(output.toString('latin1', offset, offset + MEDIA.length), MEDIA.toString());
      const userData = box('udta', NAME, box('free', end));
      assert.deepEqual(find(output, 'moov').bytes, box('moov', trak({ tables: [stco(offset)] }), userData));
      assert.deepEqual(output.subarray(-FREE.length), FREE);
    });
  }

  test('get a header that moves the bytes behind it, and counts in the sizes of all parents', async () => {
    const end = u32(0);
    const moovOf = (offset: number) =>
      largeBox('moov', trak({ tables: [stco(offset)], more: [box('udta', end)] }), box('udta', NAME, end), end);
    const input = assemble(FTYP, ([, , mdat = 0]) => moovOf(mdat + 8), box('mdat', MEDIA));
    const { output } = await embed(isobmff, input, manifest);
    const wrapped = box('free', end);
    const offset = output.indexOf(MEDIA);
    const track = trak({ tables: [stco(offset)], more: [box('udta', wrapped)] });
    assert.deepEqual(find(output, 'moov').bytes, largeBox('moov', track, box('udta', NAME, wrapped), wrapped));
  });

  test('gets into a box of its own in metadata of the file, too', async () => {
    const handler = fullBox('hdlr', 0, u32(0), Buffer.from('mdir'), Buffer.alloc(13));
    const metaWith = (end: Buffer) => fullBox('meta', 0, handler, end);
    const input = Buffer.concat([FTYP, metaWith(u32(0)), box('moov', trak()), box('mdat', MEDIA)]);
    const { output } = await embed(isobmff, input, manifest);
    assert.deepEqual(find(output, 'meta').bytes, metaWith(box('free', u32(0))));
  });

  test('gives back the same bytes when a manifest of the same size is put in again', async () => {
    const once = await embed(isobmff, withUserData(u32(0)), manifest);
    const twice = await embed(isobmff, once.output, manifest);
    assert.deepEqual(twice.output, once.output);
  });

  test('is refused where it is found in boxes without end', async () => {
    const tracks = Array<Buffer>(600).fill(box('trak', ...Array<Buffer>(120).fill(box('udta', Buffer.alloc(1)))));
    const input = Buffer.concat([FTYP, box('moov', ...tracks), box('mdat', MEDIA)]);
    assert.equal(await refusalOf(isobmff, input), 'BMFF_TOO_MANY_OFFSETS');
  });
});

describe('a signed movie of QuickTime whose lists end with a size of 0', () => {
  const folder = mediaFolder();
  let plain: Buffer;

  before(() => {
    plain = movie(folder, 'a.mov');
  });

  /** Puts more at the end of a box, which is reached by going down the given types, in every box on the way. */
  function extended(bytes: Buffer, [type, ...rest]: readonly string[], more: Buffer): Buffer {
    const boxes = boxesOf(bytes).map(({ type: found, offset, headerSize, size }) => {
      if (found !== type) return bytes.subarray(offset, offset + size);
      const content = bytes.subarray(offset + headerSize, offset + size);
      return box(found, ...(rest.length === 0 ? [content, more] : [extended(content, rest, more)]));
    });
    return Buffer.concat(boxes);
  }

  for (const [what, end] of Object.entries(ENDS)) {
    test(`is valid, and every sample is the same: ${what}`, async () => {
      const userData = box('udta', NAME, end);
      const input = extended(extended(plain, ['moov', 'trak'], userData), ['moov'], userData);
      const last = await signBytes(isobmff, input);
      const behind = await signBytes(isobmff, Buffer.concat([input, FREE]));
      const twice = await signBytes(isobmff, behind);
      for (const output of [last, behind, twice]) {
        await assertValid(output, 'video/quicktime');
        assert.equal(packetsOf(folder, output), packetsOf(folder, input));
        assert.deepEqual(await samplesOf(output), await samplesOf(input));
      }
    });
  }
});
