import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import {
  box,
  C2PA_ID,
  c2paBox,
  FTYP,
  ftyp,
  fullBox,
  moovWith,
  stco,
  trak,
  u32,
  XMP_ID,
} from '../../support/media/movie-bytes.ts';
import { memorySource, refusalOf } from '../../support/memory-bytes.ts';

const never = new AbortController().signal;
const MDAT = box('mdat', Buffer.alloc(20));
const video = trak({ handlerType: 'vide', id: 2, entries: [['avc1', 1]] });
const sound = trak({ handlerType: 'soun' });

async function kindOf(...parts: Buffer[]) {
  const { mediaType, extensions, hasVideo } = await isobmff.readLayout(memorySource(Buffer.concat(parts)), never);
  return { mediaType, extension: extensions[0], hasVideo };
}

describe('a file is recognised', () => {
  const both = box('moov', sound, video);
  const soundOnly = box('moov', sound);
  const kinds: Record<string, [Buffer[], object]> = {
    MP4: [[FTYP, both], { mediaType: 'video/mp4', extension: 'mp4', hasVideo: true }],
    'MP4 that holds sound alone': [[FTYP, soundOnly], { mediaType: 'audio/mp4', extension: 'm4a', hasVideo: false }],
    'MP4 that holds neither': [[FTYP, box('moov')], { mediaType: 'video/mp4', extension: 'mp4', hasVideo: false }],
    M4A: [[ftyp('M4A '), soundOnly], { mediaType: 'audio/mp4', extension: 'm4a', hasVideo: false }],
    'an M4A that is a movie': [[ftyp('M4A '), both], { mediaType: 'video/mp4', extension: 'mp4', hasVideo: true }],
    M4V: [[ftyp('M4V '), both], { mediaType: 'video/mp4', extension: 'm4v', hasVideo: true }],
    MOV: [[ftyp('qt  '), both], { mediaType: 'video/quicktime', extension: 'mov', hasVideo: true }],
    'a MOV from before there was ftyp': [[both], { mediaType: 'video/quicktime', extension: 'mov', hasVideo: true }],
    '3GP': [[ftyp('3gp4'), both], { mediaType: 'video/mp4', extension: '3gp', hasVideo: true }],
    '3GP that holds sound alone': [
      [ftyp('3gp4'), soundOnly],
      { mediaType: 'audio/mp4', extension: '3gp', hasVideo: false },
    ],
    '3G2': [[ftyp('3g2a'), both], { mediaType: 'video/mp4', extension: '3g2', hasVideo: true }],
  };
  for (const [what, [parts, kind]] of Object.entries(kinds)) {
    test(what, async () => assert.deepEqual(await kindOf(...parts, MDAT), kind));
  }

  test('a cover and pictures of chapters are no video', async () => {
    const stsz = fullBox('stsz', 0, u32(0, 1, 999));
    const cover = trak({ handlerType: 'vide', id: 3, entries: [['jpeg', 1]], tables: [stsz] });
    const chapters = trak({ handlerType: 'soun', more: [box('tref', box('chap', u32(2)))] });
    assert.equal((await kindOf(FTYP, box('moov', sound, cover), MDAT)).hasVideo, false);
    assert.equal((await kindOf(FTYP, box('moov', chapters, video), MDAT)).hasVideo, false);
    assert.equal(
      (await kindOf(FTYP, box('moov', chapters, video, cover, trak({ handlerType: 'vide', id: 4 })), MDAT)).hasVideo,
      true,
    );
    assert.equal((await kindOf(FTYP, box('moov', cover), MDAT)).hasVideo, true);
  });

  test('JPEG and PNG by their object types in MPEG-4 are a cover too, other codecs are not', async () => {
    const stsz = fullBox('stsz', 0, u32(0, 1, 999));
    const hasVideo = async (objectType: number, header: readonly number[]): Promise<boolean> => {
      const esds = fullBox('esds', 0, Buffer.from([3, ...header, 0, 1, 0, 4, ...header, objectType]));
      const entries = [['mp4v', 1, Buffer.concat([Buffer.alloc(50), esds])]] as const;
      const cover = trak({ handlerType: 'vide', id: 3, entries, tables: [stsz] });
      return (await kindOf(FTYP, box('moov', sound, cover), MDAT)).hasVideo;
    };
    for (const header of [[20], [0x80, 0x80, 0x80, 20]]) {
      assert.deepEqual(
        [await hasVideo(0x6c, header), await hasVideo(0x6d, header), await hasVideo(0x20, header)],
        [false, false, true],
      );
    }
  });

  test('by its first box, whatever follows', () => {
    for (const type of ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot', 'styp', 'moof']) {
      assert.ok(isobmff.matches(box(type)), type);
    }
    for (const head of [
      '',
      'RIFF',
      'ID3\x04\0\0\0\0\0\0',
      '\xff\xfb\x90\x64\0\0\0\0\0\0',
      'fLaC\0\0\0\x22\0\0',
      'x'.repeat(64),
    ]) {
      assert.ok(!isobmff.matches(Buffer.from(head, 'latin1')), head);
    }
  });

  test('with its XMP packet', async () => {
    const packet = Buffer.from('<x:xmpmeta/>');
    const input = Buffer.concat([FTYP, box('uuid', XMP_ID, packet), moovWith(), MDAT]);
    const { xmp, manifest } = await isobmff.readLayout(memorySource(input), never);
    assert.deepEqual(
      { xmp, manifest },
      { xmp: { offset: input.indexOf(packet), length: packet.length }, manifest: null },
    );
  });

  test('with the manifest that is active: an update comes before the original', async () => {
    const stores = ['original', 'update', 'unknown'].map((purpose) =>
      c2paBox(purpose, Buffer.from(`xxxxjumb${purpose}`)),
    );
    const input = Buffer.concat([
      FTYP,
      moovWith(),
      MDAT,
      ...stores,
      box('uuid', C2PA_ID),
      box('uuid', Buffer.alloc(3)),
    ]);
    const { manifest } = await isobmff.readLayout(memorySource(input), never);
    assert.deepEqual(manifest, { offset: input.indexOf('xxxxjumbupdate'), length: 14 });
  });
});

/** The first box in a `meta` box. */
const HANDLER = fullBox('hdlr', 0, u32(0), Buffer.from('mdirappl'), Buffer.alloc(9));

describe('a file is refused', () => {
  const sized = (sizeBytes: number, bytes: Buffer) => Buffer.concat([u32(sizeBytes), bytes.subarray(4)]);
  const compressed = box('moov', box('cmov', box('dcom', Buffer.from('zlib')), box('cmvd', Buffer.alloc(9))));
  const moovOf = (...tables: Buffer[]) => Buffer.concat([FTYP, moovWith(...tables), MDAT]);
  const movieWith = (userData: Buffer) => Buffer.concat([FTYP, box('moov', trak(), userData), MDAT]);
  const refusals: Record<string, [Buffer, string]> = {
    'when it ends in its media': [
      Buffer.concat([FTYP, moovWith(), sized(MDAT.length + 65, MDAT)]),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when it ends in a header': [
      Buffer.concat([FTYP, MDAT, moovWith()]).subarray(0, FTYP.length + MDAT.length + 7),
      'BMFF_MOVIE_MISSING',
    ],
    'when it ends before its tables': [Buffer.concat([FTYP, MDAT]), 'BMFF_MOVIE_MISSING'],
    'when it ends before its media': [Buffer.concat([FTYP, moovWith()]), 'BMFF_MEDIA_MISSING'],
    'when it is a fragment': [Buffer.concat([box('styp'), box('moof'), MDAT]), 'BMFF_MOVIE_MISSING'],
    'when its tables are compressed': [Buffer.concat([FTYP, compressed, MDAT]), 'BMFF_MOVIE_COMPRESSED'],
    'when a box is smaller than its header': [
      Buffer.concat([FTYP, sized(7, moovWith()), MDAT]),
      'BMFF_BOX_SIZE_INVALID',
    ],
    'when a box is larger than the file': [
      Buffer.concat([FTYP, sized(9999, moovWith()), MDAT]),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when a 64-bit size is smaller than its header': [
      Buffer.concat([FTYP, u32(1), Buffer.from('moov'), u32(0, 15), moovWith(), MDAT]),
      'BMFF_BOX_SIZE_INVALID',
    ],
    'when a 64-bit size is larger than any file': [
      Buffer.concat([FTYP, u32(1), Buffer.from('moov'), u32(0xffffffff, 0xffffffff), MDAT]),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when a box inside is larger than what holds it': [
      Buffer.concat([FTYP, box('moov', sized(5000, trak())), MDAT]),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when a tag is larger than what holds it, of which players make nothing': [
      movieWith(box('udta', fullBox('meta', 0, sized(5000, HANDLER)))),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when a tag of QuickTime is larger than what holds it': [
      movieWith(box('udta', box('meta', HANDLER, sized(5000, box('ilst'))))),
      'BMFF_BOX_EXCEEDS_PARENT',
    ],
    'when a box inside is smaller than its header': [
      Buffer.concat([FTYP, box('moov', sized(5, trak())), MDAT]),
      'BMFF_BOX_SIZE_INVALID',
    ],
    'when a table has more entries than its box has room': [
      moovOf(fullBox('stco', 0, u32(3, 1, 2))),
      'BMFF_BOX_MALFORMED',
    ],
    'when a table claims all entries there can be': [moovOf(fullBox('co64', 0, u32(0xffffffff))), 'BMFF_BOX_MALFORMED'],
    'when a table ends before its count': [moovOf(box('stco', Buffer.alloc(3))), 'BMFF_BOX_MALFORMED'],
    'when a track has boxes without end': [
      Buffer.concat([FTYP, box('moov', ...Array<Buffer>(70_000).fill(box('free'))), MDAT]),
      'BMFF_TOO_MANY_BOXES',
    ],
    'when it has boxes without end': [Buffer.concat(Array<Buffer>(500_001).fill(box('free'))), 'BMFF_TOO_MANY_BOXES'],
  };
  for (const [when, [input, reason]] of Object.entries(refusals)) {
    test(when, async () => assert.equal(await refusalOf(isobmff, input), reason));
  }

  test('with the name of the file, the box and its offset', async () => {
    const inner = sized(5000, stco(1));
    const input = Buffer.concat([FTYP, moovWith(inner), MDAT]);
    const offset = input.indexOf(inner);
    await assert.rejects(isobmff.readLayout(memorySource(input, 'x.mp4'), never), ({ reason, details }: AppError) => {
      assert.equal(reason, 'BMFF_BOX_EXCEEDS_PARENT');
      const parentEndOffset = FTYP.length + moovWith(inner).length;
      assert.deepEqual(details, {
        name: 'x.mp4',
        boxType: 'stco',
        offset,
        sizeBytes: 5000,
        parent: 'stbl',
        parentEndOffset,
      });
      return true;
    });
  });

  test('never for lists of QuickTime, nor for user data that is no box', async () => {
    const list = box('udta', box('\u00a9nam', Buffer.from('name')), u32(0));
    const unknown = box('udta', fullBox('meta', 0, u32(0x7fffffff), Buffer.from('something else')));
    for (const userData of [list, unknown]) assert.equal(await refusalOf(isobmff, movieWith(userData)), 'accepted');
  });

  test('never for its depth: boxes that are not needed are not walked', async () => {
    let nested = box('udta');
    for (let depth = 0; depth < 1000; depth += 1) nested = box(depth % 2 === 0 ? 'edts' : 'udta', nested);
    assert.equal(await refusalOf(isobmff, Buffer.concat([FTYP, box('moov', nested, video), MDAT])), 'accepted');
  });
});

test('a still picture is refused as one, and not as a recording that was cut off', async () => {
  const picture = Buffer.concat([FTYP, fullBox('meta', 0, HANDLER), MDAT]);
  await assert.rejects(isobmff.readLayout(memorySource(picture), never), /is a still picture .* "sidecar"/);
});
