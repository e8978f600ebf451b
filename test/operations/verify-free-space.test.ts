import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { itemAt } from '#errors/assert.ts';
import { BMFF_EXCLUSIONS, bmffHash, exclusion } from '#formats/isobmff/bmff-hash.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { withCompressedTables } from '../support/media/compressed-tables.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { box, fullBox, u32, u64 } from '../support/media/movie-bytes.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { elementOf, filled, shortened, takeApart } from '../support/verification/file-forgeries.ts';
import { decoded, makeSigned, verdictOn } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// Hashes of the official SDK leave out free space (`free`, `skip`). ffmpeg takes free space that begins as a movie does for the movie
// where it finds no other one, and finds none behind a box of an impossible size.

const folder = temporaryFolder();

function madeOf(name: string, args: string): Buffer {
  makeMedia(folder, [...args.split(' '), name]);
  return readFileSync(join(folder, name));
}

async function stateOf(name: string, ...parts: readonly Uint8Array[]): Promise<string> {
  return (await verdictOn(name, { [name]: Buffer.concat(parts) }, folder)).state;
}

/** Twelve bytes with a size of 64 bits, which has no place in them: readers find another box of twelve bytes behind it. */
const broken = (type: string) => Buffer.concat([u32(1), Buffer.from(type), u64(12), Buffer.from(type), u32(0)]);

/** Returns the movie of other media with samples at an offset, as free space. */
function hiddenMovie(media: Buffer, samplesAt: number): Buffer {
  const moov = Buffer.from(topBoxesOf(media).find(({ type }) => type === 'moov')?.bytes ?? Buffer.of());
  moov.write('free', 4, 'latin1');
  moov.writeUInt32BE(samplesAt, moov.indexOf('stco') + 12);
  return moov;
}

describe('a movie of the official SDK', async () => {
  const other = madeOf('other.mp4', '-f lavfi -i testsrc=s=32x32:r=10:d=1 -c:v libx264');
  const samples =
    topBoxesOf(other)
      .find(({ type }) => type === 'mdat')
      ?.bytes.subarray(8) ?? Buffer.of();
  const film = madeOf('film.mp4', '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v libx264');
  const signed = await takeApart(await signBySdk(film, 'video/mp4', 'create'));
  const own = elementOf(signed, shortened(signed.store, 3000));
  const space = box('free', samples);
  const movie = hiddenMovie(other, signed.bytes.length + 8);
  const forged = (...boxes: readonly Buffer[]) => {
    const bytes = signed.end - signed.start - Buffer.concat([own, ...boxes]).length;
    return Buffer.concat([filled(signed, own, ...boxes, box('free', Buffer.alloc(bytes - 8))), space]);
  };

  test('is valid with free space, also where it begins as a movie does: players take the one that they find', async () => {
    for (const bytes of [signed.bytes, forged(), forged(movie)]) {
      assert.equal(await stateOf('film.mp4', bytes), 'valid');
      assert.equal(decoded('film.mp4', bytes, folder), decoded('film.mp4', signed.bytes, folder));
    }
  });

  test('is invalid where a box of an impossible size hides it', async () => {
    const hidden = forged(movie, broken('free'));
    assert.notEqual(decoded('film.mp4', hidden, folder), decoded('film.mp4', signed.bytes, folder));
    assert.equal(await stateOf('film.mp4', hidden), 'invalid');
  });

  test('is invalid with such a box behind it, in which others may be hidden', async () => {
    for (const type of ['free', 'skip', 'mfra', 'ftyp'])
      assert.equal(await stateOf('film.mp4', signed.bytes, broken(type)), 'invalid', type);
  });
});

test('a movie of this service is invalid with a box of an impossible size', async () => {
  const { bytes } = await makeSigned('film.mp4', folder);
  for (const type of ['mfra', 'ftyp']) assert.equal(await stateOf('film.mp4', bytes, broken(type)), 'invalid', type);
});

test('a picture is invalid with free space that begins as a movie does', async () => {
  const picture = madeOf('a.avif', '-f lavfi -i testsrc2=s=64x48 -frames:v 1');
  const signed = await signBySdk(picture, 'image/avif', 'create');
  const header = fullBox('mvhd', 0, Buffer.alloc(96));
  assert.equal(await stateOf('a.avif', signed), 'valid');
  assert.equal(await stateOf('a.avif', signed, box('free', Buffer.alloc(100))), 'valid');
  assert.equal(await stateOf('a.avif', signed, box('free', header)), 'invalid');
  assert.equal(await stateOf('a.avif', signed, box('free', box('cmov', Buffer.alloc(8)))), 'invalid');
});

test('a movie whose tables only others can read is not vouched for', async () => {
  const film = madeOf('film.mov', '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v mjpeg');
  const bytes = await signBySdk(withCompressedTables(film), 'video/quicktime', 'create');
  const verdict = await verdictOn('film.mov', { 'film.mov': bytes }, folder);
  assert.deepEqual(verdict, { state: 'refused', reason: 'BMFF_MOVIE_COMPRESSED' });
});

test('a file type that has grown over the free space behind it makes a movie invalid', async () => {
  const film = madeOf(
    'film.mp4',
    '-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v libx264 -movflags +frag_keyframe+empty_moov+default_base_moof',
  );
  const [ftyp, ...rest] = topBoxesOf(film).filter(({ type }) => type !== 'mfra');
  assert(ftyp !== undefined);
  const spacious = Buffer.concat([ftyp.bytes, box('free', Buffer.alloc(100_000)), ...rest.map(({ bytes }) => bytes)]);
  const signed = topBoxesOf(await signBySdk(spacious, 'video/mp4', 'create'));
  assert.deepEqual(
    signed.slice(0, 3).map(({ type }) => type),
    ['ftyp', 'uuid', 'free'],
  );
  const [own, element, , ...others] = signed.map(({ bytes }) => bytes) as [Buffer, Buffer, Buffer, ...Buffer[]];
  assert.equal(await stateOf('film.mp4', own, element, itemAt(signed, 2).bytes, ...others), 'valid');
  assert.equal(
    await stateOf('film.mp4', box('ftyp', own.subarray(8), Buffer.alloc(100_008)), element, ...others),
    'invalid',
  );
});

test('a fragmented movie of the official SDK is valid, which moves all entries of its index to the last fragment', async () => {
  const film = madeOf(
    'film.mp4',
    '-f lavfi -i testsrc2=s=64x48:r=10:d=3 -c:v libx264 -g 10 -movflags +frag_keyframe+empty_moov+default_base_moof',
  );
  const signed = await signBySdk(film, 'video/mp4', 'create');
  assert.equal(await stateOf('film.mp4', signed), 'valid');
  const index = topBoxesOf(signed).at(-1)?.bytes ?? Buffer.of();
  const before = signed.subarray(0, -index.length);
  // The size, the index in it with its count, and the entries.
  const [tfra, entryBytes] = [index.subarray(8, -16), 19];
  assert.equal(tfra.readUInt32BE(20), 3);
  const longer = Buffer.concat([tfra, tfra.subarray(-entryBytes)]);
  longer.writeUInt32BE(longer.length);
  longer.writeUInt32BE(4, 20);
  assert.equal(await stateOf('film.mp4', before, box('mfra', tfra)), 'valid');
  assert.equal(await stateOf('film.mp4', before, box('mfra', longer)), 'invalid', 'more entries than fragments');
  // Players find an index by its size in the last bytes of the file, wherever it begins.
  const hidden = (size: number) => box('mfra', tfra, fullBox('mfro', 0, u32(size)));
  const sizeBytes = hidden(0).length;
  assert.equal(await stateOf('film.mp4', before, hidden(sizeBytes)), 'valid');
  assert.equal(await stateOf('film.mp4', before, box('free', hidden(0))), 'valid');
  assert.equal(await stateOf('film.mp4', before, box('free', hidden(sizeBytes))), 'invalid', 'in free space');
  const behind = box('mfra', tfra, fullBox('mfro', 0, u32(2 * sizeBytes)));
  assert.equal(await stateOf('film.mp4', before, box('free', hidden(0)), behind), 'invalid', 'in the box before');
});

test('a verdict says that a signature leaves out by which positions players find samples', async () => {
  const movie = madeOf('tone.mov', '-f lavfi -i sine=r=8000:d=1 -c:a pcm_s16le -movflags +faststart');
  const covered = topBoxesOf(movie).flatMap(({ type, bytes }) => {
    const tableAt = type === 'moov' ? bytes.indexOf('stco') - 4 : bytes.length;
    const behind = bytes.subarray(tableAt + (type === 'moov' ? bytes.readUInt32BE(tableAt) : 0));
    return type === 'ftyp' ? [] : [u64(movie.indexOf(bytes)), bytes.subarray(0, tableAt + 16), behind];
  });
  const positions = exclusion('/moov/trak/mdia/minf/stbl/stco', { subset: [{ offset: 16, length: 0 }] });
  const digest = createHash('sha256').update(Buffer.concat(covered)).digest();
  const store = await makeManifest(bmffHash(digest, [], [...BMFF_EXCLUSIONS, positions]));
  const signed = Buffer.concat([movie, c2paUuidBox('manifest', store)]);
  signed.writeUInt32BE(signed.readUInt32BE(signed.indexOf('stco') + 12) - 16, signed.indexOf('stco') + 12);
  const verdict = await verdictOn('tone.mov', { 'tone.mov': signed }, folder);
  assert('codes' in verdict);
  assert.equal(verdict.state, 'valid');
  assert(verdict.codes.some(({ code }) => code === 'assertion.bmffHash.additionalExclusionsPresent'));
});

test('a moving picture is invalid with a file type by which players show its still picture', async () => {
  const picture = madeOf('a.avif', '-f lavfi -i testsrc2=s=64x48:r=2:d=2 -c:v libaom-av1 -cpu-used 8');
  const signed = await signBySdk(picture, 'image/avif', 'create');
  const withBrands = (from: string, to: string) => {
    const [own, ...others] = topBoxesOf(signed).map(({ bytes }) => bytes) as [Buffer, ...Buffer[]];
    return [Buffer.from(own.toString('latin1').replaceAll(from, to), 'latin1'), ...others];
  };
  assert.equal(await stateOf('a.avif', signed), 'valid');
  assert.equal(await stateOf('a.avif', ...withBrands('msf1', 'mif1')), 'valid');
  for (const brand of ['avif', 'mif1', 'isom'])
    assert.equal(await stateOf('a.avif', ...withBrands('avis', brand)), 'invalid');
});
