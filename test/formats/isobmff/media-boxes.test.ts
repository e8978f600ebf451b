import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { mediaFolder } from '../../support/judges/file-judges.ts';
import { makeMedia } from '../../support/media/make-media.ts';
import { assemble, box, boxesOf, FTYP, fullBox, stco, trak, u16, u32, u64 } from '../../support/media/movie-bytes.ts';
import { embed, memorySource, refusalOf } from '../../support/memory-bytes.ts';

const folder = mediaFolder();
const PICTURE = '-f lavfi -i testsrc2=s=64x64:r=10:d=1 -c:v libx264 -preset ultrafast -g 5';
const SOUND = '-f lavfi -i sine=r=8000:d=1';
/** A box behind the media, in which nothing is to be found. */
const FREE = box('free', Buffer.alloc(8));
const FRAGMENTED = '-movflags +empty_moov';

/** Ways to say where samples are, and how ffmpeg makes such a file with its media at the end. */
const RECIPES: Readonly<Record<string, string>> = {
  'a table of sizes': `${PICTURE} -movflags +faststart table.mp4`,
  'interleaved chunks': `${SOUND} ${PICTURE} -c:a aac -movflags +faststart interleaved.mp4`,
  'one size for all samples': `${SOUND} -c:a pcm_s16le -movflags +faststart pcm.mov`,
  'one size of 1 for larger samples': `${SOUND} -c:a pcm_mulaw -ac 2 -movflags +faststart mulaw.mov`,
  'a description of sound of version 1': `${SOUND} -c:a adpcm_ima_qt -movflags +faststart ima.mov`,
  'a description of sound of version 2': `${SOUND} -c:a pcm_f64le -ar 96000 -movflags +faststart lpcm.mov`,
  'raw pictures': '-f lavfi -i testsrc2=s=64x64:r=5:d=1 -c:v rawvideo -pix_fmt rgb24 -movflags +faststart raw.mov',
  'fragments with a base offset': `${PICTURE} ${FRAGMENTED}+frag_keyframe base.mp4`,
  'fragments that count from their boxes': `${SOUND} ${PICTURE} -c:a aac ${FRAGMENTED}+frag_keyframe+default_base_moof moof.mp4`,
  'fragments that count from each other': `${SOUND} ${PICTURE} -c:a aac ${FRAGMENTED}+frag_keyframe+omit_tfhd_offset chained.mp4`,
  'a fragment for every sample': `${PICTURE} ${FRAGMENTED}+frag_every_frame samples.mp4`,
  'fragments of samples of one size': `${SOUND} -c:a pcm_s16le -f mov ${FRAGMENTED}+frag_keyframe fragment-pcm.mov`,
};

async function strayTypes(file: Uint8Array): Promise<readonly string[]> {
  const { strayMedia } = await isobmff.readLayout(memorySource(file), new AbortController().signal);
  return strayMedia.map(({ type }) => type);
}

/** A file with its last `mdat` shortened by some bytes, without what follows that. */
function cutShort(file: Buffer, missingBytes: number): Buffer {
  const media = boxesOf(file).findLast(({ type }) => type === 'mdat');
  assert(media !== undefined);
  const cut = Buffer.from(file.subarray(0, media.offset + media.size - missingBytes));
  cut.writeUInt32BE(media.size - missingBytes, media.offset);
  return cut;
}

describe('media is found outside the boxes for it', () => {
  for (const [where, recipe] of Object.entries(RECIPES)) {
    test(`where a box begins at its last byte: ${where}`, async () => {
      makeMedia(folder, recipe.split(' '));
      const file = readFileSync(join(folder, recipe.split(' ').at(-1) as string));
      const whole = cutShort(file, 0);
      assert.deepEqual(await strayTypes(Buffer.concat([whole, FREE])), []);
      assert.deepEqual(await strayTypes(cutShort(file, 1)), []);
      assert.deepEqual(await strayTypes(Buffer.concat([cutShort(file, 1), FREE])), ['free']);
    });
  }

  test('by sizes of four bits', async () => {
    const tables = (offset: number) => [
      stco(offset),
      fullBox('stsc', 0, u32(1), u32(1, 3, 1)),
      fullBox('stz2', 0, u32(4, 3), Buffer.from([0x12, 0x30])),
    ];
    const movie = (media: Buffer): Buffer =>
      assemble(FTYP, ([, , mdat = 0]) => box('moov', trak({ tables: tables(mdat + 8) })), box('mdat', media), FREE);
    assert.deepEqual(await strayTypes(movie(Buffer.alloc(6))), []);
    assert.deepEqual(await strayTypes(movie(Buffer.alloc(5))), ['free']);
  });

  test('everywhere, where a track has two of a table, or a fragment two headers: players take different ones', async () => {
    const sizes = fullBox('stsz', 0, u32(4, 1));
    const chunks = fullBox('stsc', 0, u32(1), u32(1, 1, 1));
    const movie = (...tables: Buffer[]): Buffer =>
      assemble(
        FTYP,
        ([, , mdat = 0]) => box('moov', trak({ tables: [stco(mdat + 8), ...tables] })),
        box('mdat', u32(0)),
      );
    assert.deepEqual(await strayTypes(movie(chunks, sizes)), []);
    for (const doubled of [sizes, chunks, stco(0), fullBox('stz2', 0, u32(8, 0))]) {
      assert.deepEqual(await strayTypes(movie(chunks, sizes, doubled)), ['ftyp', 'moov']);
    }
    // Players read on behind tables that claim more than they hold.
    for (const overstated of [fullBox('stsz', 0, u32(0, 2, 4)), fullBox('stz2', 0, u32(4, 9, 0x11110000))]) {
      assert.deepEqual(await strayTypes(movie(chunks, overstated)), ['ftyp', 'moov']);
    }
    assert.deepEqual(await strayTypes(movie(fullBox('stsc', 0, u32(2), u32(1, 1, 1)), sizes)), ['ftyp', 'moov']);
    const header = fullBox('tfhd', 0, u32(1));
    const fragment = (...headers: Buffer[]): Buffer => box('moof', box('traf', ...headers, fullBox('trun', 0, u32(0))));
    const fragmented = (...headers: Buffer[]): Buffer =>
      Buffer.concat([movie(chunks, sizes), fragment(...headers), box('mdat')]);
    assert.deepEqual(await strayTypes(fragmented(header)), []);
    assert.deepEqual(await strayTypes(fragmented(header, header)), ['ftyp', 'moov', 'moof']);
  });

  test('everywhere, where tables of samples stand beside the movie, or in another box of it', async () => {
    const track = trak({ tables: [stco(8)] });
    const film = [FTYP, box('moov', trak()), box('mdat', u32(0))];
    assert.deepEqual(await strayTypes(Buffer.concat(film)), []);
    assert.deepEqual(await strayTypes(Buffer.concat([...film, box('udta', box('name'))])), []);
    assert.deepEqual(await strayTypes(Buffer.concat([...film, track])), ['ftyp', 'moov', 'trak']);
    assert.deepEqual(await strayTypes(Buffer.concat([...film, box('udta', box('moov', track))])), [
      'ftyp',
      'moov',
      'udta',
    ]);
    const [, , media] = film as [Buffer, Buffer, Buffer];
    assert.deepEqual(await strayTypes(Buffer.concat([FTYP, box('moov', trak(), box('udta', track)), media])), [
      'ftyp',
      'moov',
    ]);
  });

  test('by the tables of a track whose media an address says to be elsewhere: players read this file', async () => {
    const elsewhere = fullBox('url ', 0, Buffer.from('other.mov\0'));
    const tables = [stco(8), fullBox('stsc', 0, u32(1), u32(1, 1, 1)), fullBox('stsz', 0, u32(4, 1))];
    const movie = box('moov', trak({ tables, dataReferences: [elsewhere] }));
    assert.deepEqual(await strayTypes(Buffer.concat([FTYP, movie, box('mdat', u32(0))])), ['ftyp']);
  });

  test('by auxiliary information of samples, which says how they are decrypted', async () => {
    const sizes = fullBox('saiz', 0, Buffer.from([22]), u32(3));
    const listed = fullBox('saiz', 0, Buffer.from([0]), u32(3), Buffer.from([2, 20, 44]));
    const saio = (...offsets: number[]) => fullBox('saio', 0, u32(offsets.length), u32(...offsets));
    const chunks = fullBox('stsc', 0, u32(2), u32(1, 1, 1), u32(2, 2, 1));
    const movie = (tables: (media: number) => readonly Buffer[]): Buffer =>
      assemble(
        FTYP,
        ([, , at = 0]) => box('moov', trak({ tables: tables(at + 8) })),
        box('mdat', Buffer.alloc(66)),
        FREE,
      );
    const fragmented = (of: (media: number) => readonly Buffer[], base = 0): Buffer =>
      assemble(
        FTYP,
        box('moov', trak()),
        ([, , , at = 0]) =>
          box(
            'moof',
            box('traf', fullBox('tfhd', 1, u32(1), u64(base)), fullBox('trun', 1, u32(0, at + 8)), ...of(at + 8)),
          ),
        box('mdat', Buffer.alloc(66)),
        FREE,
      );
    for (const made of [movie, fragmented]) {
      for (const table of [sizes, listed]) {
        assert.deepEqual(await strayTypes(made((at) => [table, saio(at)])), []);
        assert.deepEqual(await strayTypes(made((at) => [table, saio(at + 1)])), ['free']);
        assert.deepEqual(await strayTypes(made(() => [table, saio(0)])).then(([first]) => first), 'ftyp');
      }
      // Players read on behind tables that claim more than they hold.
      const overstated = [fullBox('saiz', 0, Buffer.from([0]), u32(4), Buffer.from([1, 2, 3])), saio(100)];
      assert.ok((await strayTypes(made(() => overstated))).includes('ftyp'));
      assert.ok((await strayTypes(made((at) => Array<Buffer>(5).fill(saio(at))))).includes('ftyp'));
    }
    assert.deepEqual(await strayTypes(movie((at) => [chunks, sizes, saio(at, at + 22)])), []);
    assert.deepEqual(await strayTypes(movie((at) => [chunks, sizes, saio(at + 44, at)])), []);
    assert.deepEqual(await strayTypes(movie((at) => [chunks, sizes, saio(at, at + 23)])), ['free']);
    assert.deepEqual(await strayTypes(fragmented(() => [sizes, saio(0)], 1)), ['ftyp', 'moov']);
  });

  test('by items, up to their ends', async () => {
    const movie = (offset: number): Buffer =>
      assemble(
        FTYP,
        ([, , at = 0]) =>
          box(
            'moov',
            trak(),
            fullBox('meta', 0, fullBox('iloc', 0, u16(0x4400, 1), u16(1, 0, 1), u32(at + 8 + offset, 8))),
          ),
        box('mdat', Buffer.alloc(16)),
        FREE,
      );
    assert.deepEqual(await strayTypes(movie(8)), []);
    assert.deepEqual(await strayTypes(movie(9)), ['free']);
  });

  test('where entries of an index lead elsewhere than to fragments, or are more than these: players find space in such', async () => {
    const traf = box('traf', fullBox('tfhd', 0x020000, u32(1)), fullBox('trun', 1, u32(0, 0)));
    const entry = (moof: number) => Buffer.concat([u32(0, moof), Buffer.from('010101', 'hex')]);
    const tfra = (track: number, ...moofs: number[]) =>
      fullBox('tfra', 0, u32(track, 0, moofs.length), ...moofs.map(entry));
    const movie = (index: (first: number, second: number) => readonly Buffer[]): Buffer =>
      assemble(
        ...[FTYP, box('moov', trak()), box('moof', traf), box('mdat'), box('moof', traf), box('mdat')],
        (offsets) => box('mfra', ...index(offsets[2] as number, offsets[4] as number), fullBox('mfro', 0, u32(0))),
      );
    assert.deepEqual(await strayTypes(movie((first, second) => [tfra(1, first, second), tfra(2, second)])), []);
    // The official SDK moves all entries to the last fragment.
    assert.deepEqual(await strayTypes(movie((_first, second) => [tfra(1, second, second)])), []);
    for (const stray of [
      movie((first, second) => [tfra(1, first, second + 1)]),
      movie((first, second) => [tfra(1, first, first, second)]),
      movie((first, second) => [tfra(1, first), tfra(1, second)]),
    ]) {
      assert.deepEqual(await strayTypes(stray), ['mfra']);
      // Signing leaves it out: players do without it.
      const { output } = await embed(isobmff, stray, Buffer.alloc(100));
      assert.ok(!boxesOf(output).some(({ type }) => type === 'mfra'));
    }
  });

  test('where a file type is longer than any is, so that it has room for media', async () => {
    const file = (bytes: number): Buffer =>
      Buffer.concat([box('ftyp', Buffer.alloc(bytes)), box('moov', trak()), box('mdat', u32(0))]);
    assert.deepEqual(await strayTypes(file(1024)), []);
    assert.deepEqual(await strayTypes(file(1028)), ['ftyp']);
  });

  test('and then the file is not signed, if a hash leaves out the box', async () => {
    const tables = [stco(8), fullBox('stsc', 0, u32(1), u32(1, 1, 1)), fullBox('stsz', 0, u32(4, 1))];
    const movie = Buffer.concat([FTYP, box('moov', trak({ tables })), box('mdat', Buffer.alloc(8))]);
    assert.equal(await refusalOf(isobmff, movie), 'BMFF_MEDIA_UNBOUND');
    const hidden = box('moov', trak({ more: [box('wave', box('stbl', ...tables))] }));
    assert.equal(
      await refusalOf(isobmff, Buffer.concat([FTYP, hidden, box('mdat', Buffer.alloc(8))])),
      'BMFF_BOX_MALFORMED',
    );
  });
});
