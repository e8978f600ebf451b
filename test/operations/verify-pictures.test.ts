import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { superbox, typedSuperbox } from '../provenance/manifest-store-bytes.ts';
import { u32 } from '../support/media/movie-bytes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { shortened, withHeaders } from '../support/verification/file-forgeries.ts';
import { verdictOn } from '../support/verification/forged-files.ts';
import {
  boxSegment,
  jpegSegment,
  PICTURES,
  type SignedJpeg,
  signPicture,
  takeJpegApart,
} from '../support/verification/signed-pictures.ts';

// Pictures of other signers. Forgeries need no key: every byte that a hash covers stays as it is.

const folder = temporaryFolder();
const jpeg = await signPicture('a.jpg', folder);
const parts = takeJpegApart(jpeg);

async function stateOf(name: string, bytes: Uint8Array): Promise<string> {
  return (await verdictOn(name, { [name]: bytes }, folder)).state;
}

/** Returns a store of one manifest with a box behind its others. */
function grownBy(store: Buffer, box: Buffer): Buffer {
  const grown = Buffer.concat([store, box]);
  const manifestAt = 8 + grown.readUInt32BE(8);
  for (const at of [0, manifestAt]) grown.writeUInt32BE(grown.readUInt32BE(at) + box.length, at);
  return grown;
}

/** Segments that change how a picture is shown. */
const SEGMENTS: Readonly<Record<string, Buffer>> = {
  'a colour profile': jpegSegment(
    0xe2,
    Buffer.concat([Buffer.from('ICC_PROFILE\0\x01\x01', 'latin1'), Buffer.alloc(400)]),
  ),
  'an orientation': jpegSegment(
    0xe1,
    Buffer.from('4578696600004d4d002a00000008000101120003000000010006000000000000', 'hex'),
  ),
  'a restart interval': jpegSegment(0xdd, Buffer.from([0, 3])),
};

const SPLIT_AT = 10_000;
/** Bytes that a second segment takes for its header, and for that of the box. */
const SECOND_HEADER_BYTES = 20;

/** Splits a shortened store over two segments, with others between them. */
function between({ before, store, behind }: SignedJpeg, extra: Buffer): Buffer {
  const short = shortened(store, extra.length + SECOND_HEADER_BYTES);
  const rest = Buffer.concat([short.subarray(0, 8), short.subarray(SPLIT_AT)]);
  return Buffer.concat([before, boxSegment(short.subarray(0, SPLIT_AT), 1), extra, boxSegment(rest, 2), behind]);
}

/** Returns the chunk of a manifest in PNG with other content. */
function withChunk(png: Buffer, of: (store: Buffer) => Buffer): Buffer {
  const at = png.indexOf('caBX') - 4;
  const end = at + 12 + png.readUInt32BE(at);
  const data = of(png.subarray(at + 8, end - 4));
  const chunk = Buffer.concat([png.subarray(at, at + 8), data, Buffer.alloc(4)]);
  chunk.writeUInt32BE(data.length);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return Buffer.concat([png.subarray(0, at), chunk, png.subarray(end)]);
}

describe('a picture is valid as it was signed', () => {
  for (const name of Object.keys(PICTURES)) {
    test(`in ${name}`, async () => {
      assert.equal(await stateOf(name, await signPicture(name, folder)), 'valid');
    });
  }

  test('in JPEG with a manifest of several segments', async () => {
    const long = await signPicture('a.jpg', folder, 'x'.repeat(150_000));
    assert.ok(long.includes(Buffer.from('4a50021100000003', 'hex')));
    assert.equal(await stateOf('a.jpg', long), 'valid');
  });

  test('and with zeros behind its manifest', async () => {
    const png = await signPicture('a.png', folder);
    const padded = withChunk(png, (store) => Buffer.concat([shortened(store, 500), Buffer.alloc(500)]));
    assert.equal(await stateOf('a.png', padded), 'valid');
    const zeros = Buffer.concat([shortened(parts.store, 500), Buffer.alloc(500)]);
    assert.equal(await stateOf('a.jpg', Buffer.concat([parts.before, boxSegment(zeros, 1), parts.behind])), 'valid');
  });
});

describe('a picture is invalid where other bytes stand in what its hash leaves out', () => {
  for (const [name, segment] of Object.entries(SEGMENTS)) {
    test(`${name} between two segments of its manifest`, async () => {
      assert.equal(await stateOf('a.jpg', between(parts, segment)), 'invalid');
    });
  }

  test('a segment of another box, or of another number, between them', async () => {
    for (const [sequenceNumber, instance] of [
      [1, 9],
      [7, 0x211],
    ] as const) {
      const other = boxSegment(Buffer.concat([parts.store.subarray(0, 8), Buffer.alloc(52)]), sequenceNumber, instance);
      assert.equal(await stateOf('a.jpg', between(parts, other)), 'invalid');
    }
  });

  test('behind the manifest in its segment, chunk or blocks', async () => {
    const filled = (store: Buffer) => Buffer.concat([shortened(store, 500), Buffer.alloc(500, 'x')]);
    const segment = boxSegment(filled(parts.store), 1);
    assert.equal(await stateOf('a.jpg', Buffer.concat([parts.before, segment, parts.behind])), 'invalid');
    assert.equal(await stateOf('a.png', withChunk(await signPicture('a.png', folder), filled)), 'invalid');
    for (const name of ['a.webp', 'a.tiff']) {
      const bytes = Buffer.from(await signPicture(name, folder));
      const at = bytes.indexOf('jumb') - 4;
      const store = bytes.subarray(at, at + bytes.readUInt32BE(at));
      filled(Buffer.from(store)).copy(store);
      assert.equal(await stateOf(name, bytes), 'invalid', name);
    }
  });

  test('or where its manifest takes in a chunk that its hash covers', async () => {
    const png = await signPicture('a.png', folder);
    const at = png.indexOf('caBX') - 4;
    const end = at + 12 + png.readUInt32BE(at);
    const covered = png.subarray(end, png.indexOf('IDAT') - 4);
    assert.ok(covered.length > 0);
    const store = png.subarray(at + 8, end - 4);
    // The list of data boxes that is not signed begins in the padding, and ends with the first chunk behind the manifest.
    const box = (content: Buffer) =>
      typedSuperbox(
        'c2db',
        'c2pa.databoxes',
        superbox('a', Buffer.concat([u32(content.length + 8), Buffer.from('free'), content])),
      );
    const swallowed = Buffer.concat([png.subarray(end - 4, end), covered.subarray(0, -4)]);
    const list = box(swallowed);
    const own = shortened(store, list.length - swallowed.length);
    const grown = grownBy(own, list);
    const chunk = Buffer.concat([u32(grown.length), Buffer.from('caBX'), grown, covered.subarray(-4)]);
    assert.equal(at + chunk.length, end + covered.length);
    assert.equal(
      await stateOf('a.png', Buffer.concat([png.subarray(0, at), chunk, png.subarray(end + covered.length)])),
      'invalid',
    );
  });

  test('in the padding of its signature', async () => {
    const filled = (store: Buffer) =>
      withHeaders(store, (headers) => headers.set('pad', Buffer.alloc((headers.get('pad') as Buffer).length, 'x')));
    assert.equal(await stateOf('a.png', withChunk(await signPicture('a.png', folder), filled)), 'invalid');
  });
});
