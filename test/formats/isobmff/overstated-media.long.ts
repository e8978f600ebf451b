import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { assertValid, mediaFolder, signBytes } from '../../support/judges/file-judges.ts';
import { ffmpeg, movie } from '../../support/media/media-files.ts';
import { box, FTYP, find, fullBox, largeBox, moovWith, SELF_CONTAINED, trak } from '../../support/media/movie-bytes.ts';
import { memorySource } from '../../support/memory-bytes.ts';

const folder = mediaFolder();
const never = new AbortController().signal;

const reasonsOf = async (bytes: Buffer): Promise<string[] | undefined> =>
  (await isobmff.readLayout(memorySource(bytes), never)).warnings?.map(({ reason }) => reason);

test('a last media box that claims a few bytes too many gets its true size, whether bound flat or by a Merkle tree', async () => {
  const raw = [
    '-f',
    'lavfi',
    '-i',
    'testsrc=size=640x480:rate=25:duration=2',
    '-c:v',
    'rawvideo',
    '-pix_fmt',
    'yuv420p',
  ];
  const movies = [
    movie(folder, 'small.mp4', '-movflags', 'faststart'),
    ffmpeg(folder, 'large.mov', ...raw, '-movflags', 'faststart'),
  ];
  for (const genuine of movies) {
    for (const extraBytes of [1, 8, 64]) {
      const overstated = Buffer.from(genuine);
      const { offset, bytes: mdat } = find(genuine, 'mdat');
      overstated.writeUInt32BE(mdat.length + extraBytes, offset);
      assert.deepEqual(await reasonsOf(overstated), ['MEDIA_SIZE_CORRECTED']);
      const signed = await signBytes(isobmff, overstated);
      await assertValid(signed, 'video/mp4');
      assert(find(signed, 'mdat').bytes.equals(mdat));
    }
  }
});

test('a size of 64 bits is corrected as well, and more than a few missing bytes are a file that is cut short', async () => {
  const mdat = largeBox('mdat', Buffer.alloc(1000, 1));
  const withExcess = (bytes: number): Buffer => {
    const overstated = Buffer.from(mdat);
    overstated.writeBigUInt64BE(BigInt(mdat.length + bytes), 8);
    return Buffer.concat([FTYP, moovWith(), overstated]);
  };
  const signed = await signBytes(isobmff, withExcess(16));
  assert(find(signed, 'mdat').bytes.equals(mdat));
  await assert.rejects(isobmff.readLayout(memorySource(withExcess(65)), never), { reason: 'BMFF_BOX_EXCEEDS_PARENT' });
});

test('a movie with tracks whose media is in other files is signed with a warning', async () => {
  const elsewhere = fullBox('url ', 0, Buffer.from('other.mov\0'));
  const movieOf = (...references: readonly Buffer[]) =>
    Buffer.concat([
      FTYP,
      box('moov', ...references.map((reference, index) => trak({ id: index + 1, dataReferences: [reference] }))),
      box('mdat', Buffer.alloc(100)),
    ]);
  assert.deepEqual(await reasonsOf(movieOf(SELF_CONTAINED, elsewhere)), ['MEDIA_IN_OTHER_FILES']);
  assert.deepEqual(await reasonsOf(movieOf(SELF_CONTAINED, SELF_CONTAINED)), []);
});
