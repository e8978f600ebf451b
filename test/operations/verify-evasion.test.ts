import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as cborg from 'cborg';
import type { Verification } from '#contract/verification.ts';
import { isobmff } from '#formats/formats.ts';
import { c2paUuidBox } from '#formats/isobmff-boxes.ts';
import type { Rendition } from '#publications/media-part.ts';
import { readPublication } from '#publications/read-publication.ts';
import { storeByHand } from '../provenance/manifest-store-bytes.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { box, FTYP, fullBox, trak, u32, u64 } from '../support/media/movie-bytes.ts';
import { filesAt, folderOf, writeFiles } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { signAsOthers } from '../support/publications/sign-as-others.ts';
import { merkleBoxIn, topBoxesOf } from '../support/publications/signed-publication.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Signed publications, changed in ways that every single fragment survives, or that only some players notice.

const { signal } = new AbortController();
const home = temporaryFolder();
type Files = Readonly<Record<string, Uint8Array>>;

function buffersAt(folder: string): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(filesAt(folder)).map(([path, bytes]) => [path, Buffer.from(bytes)]));
}

const film = makeFilm(home);
const SHORT_SEGMENTS = '-seg_duration 0.25 -use_timeline 1 -use_template 1 -hls_playlist 1';
const files = buffersAt(makeFfmpegDash(film, join(home, 'dash'), SHORT_SEGMENTS));
const patterns = { playlist: '*.mpd', init: '*init*', frag: '*chunk*' };
const { renditions } = await readPublication(folderOf(files), patterns, signal);
const [video, audio] = renditions as [Rendition, Rendition];
const signed: Files = await signAsOthers(files, renditions, {});
const [, second, third] = video.fragments.map(({ path }) => path) as [string, string, string];
const VIDEO_PLAYLIST = 'media_0.m3u8';
const MPD = 'manifest.mpd';
let count = 0;

async function verified(changes: Files, ...removed: readonly string[]): Promise<Verification> {
  const kept = Object.entries({ ...signed, ...changes }).filter(([path]) => !removed.includes(path));
  const folder = writeFiles(join(home, `case-${count++}`, 'show'), Object.fromEntries(kept));
  return (await verifyInput({ type: 'local_folder_path', path: folder }, join(folder, '..'))).verification;
}

/** The kinds of deviations of a publication that is invalid for them. */
async function deviations(changes: Files, ...removed: readonly string[]): Promise<Record<string, number> | undefined> {
  const { state, publication } = await verified(changes, ...removed);
  assert.equal(state, 'invalid');
  return publication?.deviations;
}

/** A playlist of the publication with a text in it replaced. */
function edited(path: string, text: string, replacement: string): Record<string, Buffer> {
  const before = Buffer.from(signed[path] as Uint8Array).toString();
  assert.ok(before.includes(text));
  return { [path]: Buffer.from(before.replace(text, replacement)) };
}

function chunk(id: string, data: Uint8Array): Buffer {
  const header = Buffer.from(`${id}\0\0\0\0`, 'latin1');
  header.writeUInt32LE(data.length, 4);
  return Buffer.concat([header, data]);
}

const named = (path: string): string => `\n${path}\n`;
const extended = (line: string): Record<string, Buffer> =>
  edited('master.m3u8', '#EXT-X-VERSION:7\n', `#EXT-X-VERSION:7\n${line}\n`);
const bytesOf = (path: string): Buffer => Buffer.from(signed[path] as Uint8Array);
const withoutThird = Buffer.from(
  bytesOf(VIDEO_PLAYLIST)
    .toString()
    .replace(new RegExp(`#EXTINF[^#]*#[^\\n]*\\n${third}\\n`), ''),
);

describe('a publication is not as it was signed', () => {
  test('where an excluded box hides media behind more boxes than are looked at', async () => {
    const [, victim, other] = audio.fragments.map(({ path }) => path) as [string, string, string];
    const box = Buffer.from('000000086d667261', 'hex');
    const hidden = Buffer.concat([bytesOf(victim), ...Array<Buffer>(5000).fill(box), files[other] as Buffer]);
    assert.deepEqual(await deviations({ [victim]: hidden }), { altered: 1 });
  });

  for (const [size, of] of [
    ['00000004', 'less than a header'],
    ['7fffffff', 'more than there is'],
  ]) {
    test(`where an excluded box of ${of} hides media`, async () => {
      const [, victim, other] = audio.fragments.map(({ path }) => path) as [string, string, string];
      const hidden = Buffer.concat([bytesOf(victim), Buffer.from(`${size}6d667261`, 'hex'), files[other] as Buffer]);
      assert.deepEqual(await deviations({ [victim]: hidden }), { altered: 1 });
    });
  }

  test('where a second Merkle box of a fragment says that it belongs elsewhere', async () => {
    const [, victim] = audio.fragments.map(({ path }) => path) as [string, string];
    for (const elsewhere of [{ location: 5 }, { uniqueId: 1 }]) {
      const stated = { ...merkleBoxIn(bytesOf(victim)), ...elsewhere };
      const second = Buffer.concat([bytesOf(victim), c2paUuidBox('merkle', cborg.encode(stated))]);
      assert.deepEqual(await deviations({ [victim]: second }), { altered: 1 });
    }
  });

  test('where a Merkle box states numbers that are its own in 32 bits only (c2pa-rs #2445, #2454)', async () => {
    const [, victim] = audio.fragments.map(({ path }) => path) as [string, string];
    const own = merkleBoxIn(bytesOf(victim)) as unknown as Record<string, number>;
    for (const name of ['location', 'localId', 'uniqueId'] as const) {
      const box = c2paUuidBox('merkle', cborg.encode({ ...own, [name]: (own[name] as number) + 2 ** 32 }));
      const replaced = topBoxesOf(bytesOf(victim)).map(({ type, bytes }) => (type === 'uuid' ? box : bytes));
      assert.deepEqual(await deviations({ [victim]: Buffer.concat(replaced) }), { altered: 1 }, name);
      assert.deepEqual(await deviations({ [victim]: Buffer.concat([bytesOf(victim), box]) }), { altered: 1 }, name);
    }
  });

  test('where a box that no reader knows keeps this one from judging the order', async () => {
    const inits = Object.fromEntries(
      renditions.map(({ init: { path } }) => [
        path,
        Buffer.concat([bytesOf(path), c2paUuidBox('other' as 'merkle', Buffer.alloc(8))]),
      ]),
    );
    assert.deepEqual(await deviations({ ...inits, [VIDEO_PLAYLIST]: withoutThird }, MPD), { altered: 2 });
  });

  test('where one playlist leaves out a fragment that another names', async () => {
    assert.deepEqual(await deviations({ [VIDEO_PLAYLIST]: withoutThird }), { missing: 1 });
  });

  test('where one playlist says that there is a gap', async () => {
    const gap = edited(VIDEO_PLAYLIST, named(third), `\n#EXT-X-GAP${named(third)}`);
    assert.deepEqual(await deviations(gap), { missing: 1, ambiguous: 1 });
  });

  test('where a rendition is that of another publication with the same init segments', async () => {
    const others = Object.fromEntries(
      Object.entries(files).map(([path, bytes]) => {
        const changed = Buffer.from(bytes);
        if (path.includes('chunk')) changed.writeUInt8((changed.at(-9) as number) ^ 1, changed.length - 9);
        return [path, changed];
      }),
    );
    const theirs = await signAsOthers(others, renditions, {});
    const paths = [audio.init, ...audio.fragments].map(({ path }) => path);
    const mixed = Object.fromEntries(paths.map((path) => [path, theirs[path] as Buffer]));
    assert.deepEqual(await deviations(mixed), { missing: 2, ambiguous: 2 });
  });
});

describe('what players play beside the signed renditions is unsigned', () => {
  const out = join(home, 'unsigned');
  writeFiles(out, {});
  ffmpeg(out, ['-i', film], '-c copy -f hls -hls_time 1 -hls_list_size 0 -hls_segment_filename ts%d.ts ts.m3u8');
  const stream = buffersAt(out);
  const asText = Object.fromEntries(
    Object.entries(stream).map(([path, bytes]) =>
      path === 'ts.m3u8'
        ? [path, Buffer.from(bytes.toString().replaceAll('.ts\n', '.vtt\n'))]
        : [path.replace(/\.ts$/, '.vtt'), bytes],
    ),
  );
  const segments = Object.keys(stream).filter((path) => path.endsWith('.ts')).length;
  const VARIANT = '#EXT-X-STREAM-INF:BANDWIDTH=9000000\nts.m3u8';
  const SUBTITLES = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="t",NAME="t",URI="ts.m3u8"';

  test('in transport streams, whatever they are called', async () => {
    assert.deepEqual(await deviations({ ...stream, ...extended(VARIANT) }), { unsigned: segments });
    assert.deepEqual(await deviations({ ...asText, ...extended(VARIANT) }), { unsigned: segments });
    assert.deepEqual(await deviations({ ...asText, ...extended(SUBTITLES) }), { unsigned: segments });
  });

  test('before the init segment of a playlist', async () => {
    const early = edited(VIDEO_PLAYLIST, '#EXT-X-MAP', '#EXTINF:1.0,\nts0.ts\n#EXT-X-DISCONTINUITY\n#EXT-X-MAP');
    // The sound goes on without the discontinuity.
    assert.deepEqual(await deviations({ 'ts0.ts': stream['ts0.ts'] as Buffer, ...early }, MPD), {
      unsigned: 1,
      ambiguous: 1,
    });
  });

  test('in I-frames outside the fragments', async () => {
    const playlist = `#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-I-FRAMES-ONLY\n#EXTINF:1,\n#EXT-X-BYTERANGE:188@0\nts0.ts\n`;
    const changes = { 'ts0.ts': stream['ts0.ts'] as Buffer, 'ts.m3u8': Buffer.from(playlist), ...extended(VARIANT) };
    // It has no end, and a variant of key frames plays as media.
    assert.deepEqual(await deviations(changes), { unsigned: 1, ambiguous: 2 });
  });

  test('in a file that an MPD names as a whole', async () => {
    const set =
      '<AdaptationSet mimeType="video/webm"><Representation id="9" bandwidth="9"><BaseURL>x.webm</BaseURL></Representation></AdaptationSet>';
    const changes = { 'x.webm': Buffer.alloc(100), ...edited(MPD, '</Period>', `${set}</Period>`) };
    assert.deepEqual(await deviations(changes), { unsigned: 1 });
  });
});

describe('a playlist is not valid that players may read in another way', () => {
  const RENDITION = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="e",NAME="e"';
  for (const [why, changes] of [
    ['a carriage return inside a line', edited(VIDEO_PLAYLIST, named(third), `\n#x\rother.m4s${named(third)}`)],
    ['an address behind what is no attribute', extended(`${RENDITION},x=1,URI="other.txt"`)],
    ['two addresses in one tag', extended(`${RENDITION},URI="media_1.m3u8",URI="other.txt"`)],
    ['a tag inside a comment', extended(`## ${RENDITION},URI="other.txt"`)],
  ] as const) {
    test(why, async () => assert.ok(((await deviations(changes))?.['ambiguous'] ?? 0) > 0));
  }

  for (const [why, changes, reason] of [
    [
      'partial segments',
      edited(VIDEO_PLAYLIST, named(third), `\n#EXT-X-PART:DURATION=1,URI="other.m4s"${named(third)}`),
      'PLAYLIST_UNSUPPORTED',
    ],
    [
      'a base address elsewhere',
      edited(MPD, '<Period', '<BaseURL>https://cdn.example/</BaseURL><BaseURL>./</BaseURL><Period'),
      'PLAYLIST_LEAVES_FOLDER',
    ],
  ] as const) {
    test(why, () => assert.rejects(verified(changes), { reason }));
  }
});

describe('a verdict says that the signature leaves out parts', () => {
  const EXTRA = /^assertion\.(?:data|bmff)Hash\.additionalExclusionsPresent$/;
  const isTold = ({ state, codes }: Verification): boolean => {
    assert.equal(state, 'valid');
    return codes.some(({ code }) => EXTRA.test(code));
  };

  test('of the media of a publication', async () => {
    assert.equal(isTold(await verified({})), false);
    const loose = await signAsOthers(files, renditions, { excluded: ['mdat'] });
    assert.equal(isTold(await verified(loose)), true);
  });

  const wavWith = async (furtherBytes: number, besideBytes: number): Promise<Verification> => {
    const manifestBytes = 8192;
    const wav = smallWav();
    wav.writeUInt32LE(wav.length + manifestBytes + besideBytes, 4);
    const further = { start: 100, length: furtherBytes };
    const covered = Buffer.concat([wav.subarray(0, 100), wav.subarray(100 + furtherBytes)]);
    const hash = [...createHash('sha256').update(covered).digest()];
    const own = { start: wav.length, length: 8 + manifestBytes + besideBytes };
    const exclusions = furtherBytes === 0 ? [own] : [further, own];
    const data = { exclusions, name: 'a', alg: 'sha256', hash, pad: [] };
    const store = await makeManifest({ label: 'c2pa.hash.data', data }, manifestBytes);
    const beside = besideBytes === 0 ? [] : [chunk('LIST', Buffer.alloc(besideBytes - 8, 'INFO'))];
    const signedWav = Buffer.concat([wav, chunk('C2PA', store), ...beside]);
    const folder = writeFiles(join(home, `case-${count++}`), { 'a.wav': signedWav });
    return (await verifyInput({ type: 'local_file_path', path: join(folder, 'a.wav') }, folder)).verification;
  };

  test('of a file apart from its manifest', async () => {
    assert.equal(isTold(await wavWith(0, 0)), false);
    assert.equal(isTold(await wavWith(4000, 0)), true);
  });

  test('but is invalid where its signer left out a chunk beside the manifest', async () => {
    assert.equal((await wavWith(0, 40)).state, 'invalid');
  });

  test('but is invalid where the manifest in a sidecar leaves out a part of its file', async () => {
    const wav = smallWav();
    for (const [start, length] of [
      [0, 0],
      [100, 4000],
    ] as const) {
      const covered = Buffer.concat([wav.subarray(0, start), wav.subarray(start + length)]);
      const hash = [...createHash('sha256').update(covered).digest()];
      const data = { exclusions: [{ start, length }], name: 'a', alg: 'sha256', hash, pad: [] };
      const store = await makeManifest({ label: 'c2pa.hash.data', data });
      const folder = writeFiles(join(home, `case-${count++}`), { 'a.wav': wav, 'a.c2pa': store });
      const input = { type: 'local_file_path', path: join(folder, 'a.wav') } as const;
      assert.equal((await verifyInput(input, folder)).verification.state, length > 0 ? 'invalid' : 'valid');
    }
  });
});

describe('a file is not verified as valid', () => {
  const cut = async (...behind: readonly Buffer[]): Promise<Buffer> => {
    const folder = join(home, `case-${count++}`);
    writeFiles(folder, {});
    ffmpeg(folder, ['-f', 'lavfi', '-i', 'sine=r=8000:d=1'], '-c:a pcm_s16le -movflags +faststart tone.mov');
    const boxes = topBoxesOf(readFileSync(join(folder, 'tone.mov')));
    const [media, ...others] = boxes.toReversed();
    assert.equal(media?.type, 'mdat');
    const half = box('mdat', media.bytes.subarray(8, media.bytes.length / 2));
    return await signBytes(isobmff, Buffer.concat([...others.toReversed().map(({ bytes }) => bytes), half, ...behind]));
  };
  const verifiedFile = async (bytes: Buffer) => {
    const folder = writeFiles(join(home, `case-${count++}`), { 'tone.mov': bytes });
    return await verifyInput({ type: 'local_file_path', path: join(folder, 'tone.mov') }, folder);
  };

  test('where media that it lacks was appended in a box that the hash leaves out', async () => {
    const signed = await cut();
    assert.equal((await verifiedFile(signed)).verification.state, 'valid');
    const badEntry = box('tfra', Buffer.from('00000000000000010000000000ffffff', 'hex'), Buffer.alloc(9000));
    for (const appended of [box('ftyp', Buffer.alloc(9000)), box('mfra', badEntry)]) {
      const { state, codes } = (await verifiedFile(Buffer.concat([signed, appended]))).verification;
      assert.deepEqual([state, codes[0]?.code], ['invalid', 'assertion.bmffHash.additionalExclusionsPresent']);
    }
  });

  test('where samples were said to be encrypted as a box says that the hash leaves out, and that was appended', async () => {
    const moov = (end: number) => box('moov', trak({ tables: [fullBox('saio', 0, u32(1, end + 16))] }));
    const movie = (end: number): Buffer => Buffer.concat([FTYP, moov(end), box('mdat', Buffer.alloc(8))]);
    const signed = await signBytes(isobmff, movie(movie(0).length));
    assert.equal((await verifiedFile(signed)).verification.state, 'valid');
    const { state, codes } = (await verifiedFile(Buffer.concat([signed, box('mfra', box('tfra', u32(0, 1, 0, 0)))])))
      .verification;
    assert.deepEqual([state, codes[0]?.code], ['invalid', 'assertion.bmffHash.additionalExclusionsPresent']);
  });

  /** A well-formed box of that many bytes with two indexes of fragments, of entries of 11 and of 12 bytes. */
  function indexOfSize(sizeBytes: number): Buffer {
    const restBytes = sizeBytes - 8 - 2 * 24;
    const wide =
      Array.from({ length: 11 }, (_, count) => count).find((count) => (restBytes - 12 * count) % 11 === 0) ?? 0;
    const index = (lengths: number, count: number, entryBytes: number): Buffer =>
      box('tfra', u32(0, 1, lengths, count), Buffer.alloc(count * entryBytes));
    return box('mfra', index(0, (restBytes - 12 * wide) / 11, 11), index(1, wide, 12));
  }

  test('where a box that the hash leaves out holds something else than its type says', async () => {
    const folder = join(home, `case-${count++}`);
    writeFiles(folder, {});
    ffmpeg(folder, ['-f', 'lavfi', '-i', 'sine=r=8000:d=1'], '-c:a pcm_s16le -movflags +faststart whole.mov');
    const signed = await signBytes(isobmff, readFileSync(join(folder, 'whole.mov')));
    const [ftyp, ...rest] = topBoxesOf(signed).map(({ bytes }) => bytes) as [Buffer, ...Buffer[]];
    // The starts of packs of an MPEG program stream, by which ffmpeg takes the file for one.
    const packs = Buffer.from('6a703220000001ba44000001', 'hex');
    const otherBrands = box('ftyp', Buffer.concat([packs, ftyp.subarray(8 + packs.length)]));
    // A brand by which ffmpeg shows a picture of the metadata in place of the movie.
    const pictureBrand = box('ftyp', Buffer.concat([Buffer.from('avif'), ftyp.subarray(12)]));
    const otherMedia = box('mfra', box('free', Buffer.from('000001ba', 'hex')));
    const index = (content: string) =>
      box('tfra', Buffer.from('00000000000000010000000000000000', 'hex'), Buffer.from(content));
    const letters = box('mfra', index('sound'));
    // Players that know no sizes of 64 bits look for media behind the header.
    const wide = Buffer.concat([Buffer.from('000000016d667261', 'hex'), u64(16 + index('').length), index('')]);
    const empty = box('mfra', index(''));
    const [manifest, ...others] = rest as [Buffer, ...Buffer[]];
    assert.equal(manifest.toString('latin1', 4, 8), 'uuid');
    const filler = indexOfSize(manifest.length);
    assert.equal((await verifiedFile(Buffer.concat([ftyp, ...rest, empty]))).verification.state, 'valid');
    for (const parts of [
      [otherBrands, ...rest],
      [pictureBrand, ...rest],
      [ftyp, ...rest, otherMedia],
      [ftyp, ...rest, letters],
      [ftyp, ...rest, wide],
      // Elsewhere than writers put it, it fills the place of the manifest, which is moved to where a player finds it.
      [ftyp, filler, ...others, manifest],
      [ftyp, ...rest, ftyp],
    ]) {
      const { state, codes } = (await verifiedFile(Buffer.concat(parts))).verification;
      assert.deepEqual([state, codes[0]?.code], ['invalid', 'assertion.bmffHash.additionalExclusionsPresent']);
    }
    for (const other of [otherMedia, letters, wide, empty, ftyp]) {
      assert.deepEqual(await deviations({ [second]: Buffer.concat([bytesOf(second), other]) }), { altered: 1 });
    }
  });

  test('but where media lies in a box with an id of its own, which the hash covers', async () => {
    const signed = await cut(box('uuid', Buffer.alloc(9000)));
    const { state, codes } = (await verifiedFile(signed)).verification;
    assert.equal(state, 'valid');
    assert.ok(codes.every(({ code }) => !code.endsWith('.additionalExclusionsPresent')));
  });
});

test('a chain of manifests that would take readers minutes is refused in a publication, too', async () => {
  const levels = Array.from({ length: 24 }, (_, level): [string, string[]] => [
    `m${level}`,
    level === 0 ? [] : [`m${level - 1}`, `m${level - 1}`],
  ]);
  const [ftyp, ...rest] = topBoxesOf(files[video.init.path] as Buffer).map(({ bytes }) => bytes) as [Buffer];
  const costly = Buffer.concat([ftyp, c2paUuidBox('manifest', storeByHand(Object.fromEntries(levels))), ...rest]);
  await assert.rejects(verified({ [video.init.path]: costly }), { reason: 'MANIFEST_TOO_COMPLEX' });
});

test('a fragment that a playlist plays twice is added', async () => {
  const again = edited(VIDEO_PLAYLIST, named(third), `${named(third)}#EXTINF:1.0,${named(second)}`);
  assert.deepEqual(await deviations(again, MPD), { added: 1 });
});
