import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { MovOutputFormat, Mp4OutputFormat } from 'mediabunny';
import { formatOf } from '#formats/formats.ts';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { assertValid, mediaFolder, readNatively, signBytes } from '../../support/judges/file-judges.ts';
import { ffmpeg, movie, packaged, packetsOf, rewritten, samplesOf, sound } from '../../support/media/media-files.ts';
import { box, boxesOf, find, findAll, u32, u64 } from '../../support/media/movie-bytes.ts';
import { memorySource } from '../../support/memory-bytes.ts';

const folder = mediaFolder();
let last: Buffer;
let first: Buffer;

before(() => {
  last = movie(folder, 'last.mp4');
  first = movie(folder, 'first.mp4', '-movflags', 'faststart');
});

/** Signs a file and has readers, demuxers and players of others judge it. */
async function assertSigned(input: Buffer, { isDemuxed = true } = {}): Promise<Buffer> {
  assert.equal(formatOf(input.subarray(0, 65_536)), isobmff);
  const { mediaType } = await isobmff.readLayout(memorySource(input), new AbortController().signal);
  const output = await signBytes(isobmff, input);
  await assertValid(output, mediaType);
  assert.equal(packetsOf(folder, output), packetsOf(folder, input));
  if (isDemuxed) assert.deepEqual(await samplesOf(output), await samplesOf(input));
  return output;
}

describe('signed movies from ffmpeg are valid, and every sample is the same', () => {
  const makers: Record<string, () => Buffer> = {
    'MP4, tables last': () => last,
    'MP4, tables first': () => first,
    'MP4, fragmented, absolute offsets': () => movie(folder, 'a.mp4', '-movflags', 'frag_keyframe+empty_moov'),
    'MP4, fragmented, relative offsets': () =>
      movie(folder, 'a.mp4', '-movflags', 'frag_keyframe+empty_moov+default_base_moof'),
    'MP4, fragmented behind a part that is not': () => movie(folder, 'a.mp4', '-movflags', 'frag_keyframe'),
    'MP4, fragmented, an index in front': () => movie(folder, 'a.mp4', '-movflags', 'dash+frag_keyframe+global_sidx'),
    'MP4, fragmented, an index for each fragment': () => movie(folder, 'a.mp4', '-movflags', 'dash+frag_keyframe'),
    MOV: () => movie(folder, 'a.mov'),
    'MOV, tables first, time code': () => movie(folder, 'a.mov', '-movflags', 'faststart', '-timecode', '01:00:00:00'),
    'MOV, uncompressed sound': () => movie(folder, 'a.mov', '-c:a', 'pcm_s16le'),
    M4V: () => movie(folder, 'a.m4v'),
    '3GP': () => movie(folder, 'a.3gp', '-vf', 'scale=176:144', '-c:v', 'h263', '-r', '25'),
    '3G2': () => movie(folder, 'a.3g2'),
    M4A: () => sound(folder, 'a.m4a', '-c:a', 'aac'),
    'M4A, lossless': () => sound(folder, 'a.m4a', '-c:a', 'alac'),
    'MP4, FLAC': () => sound(folder, 'a.mp4', '-c:a', 'flac', '-strict', '-2'),
    'MP4, an edit list': () => ffmpeg(folder, 'a.mp4', '-ss', '0.7', '-i', 'last.mp4', '-c', 'copy'),
  };
  for (const [what, make] of Object.entries(makers)) {
    test(what, async () => void (await assertSigned(make())));
  }

  const undemuxed: Record<string, () => Buffer> = {
    'MP4, hint tracks': () => movie(folder, 'a.mp4', '-movflags', 'rtphint'),
    'MP4, encrypted': () => {
      const key = '00112233445566778899aabbccddeeff';
      const encryption = ['-encryption_scheme', 'cenc-aes-ctr', '-encryption_key', key, '-encryption_kid', key];
      return movie(folder, 'a.mp4', ...encryption);
    },
    'Smooth Streaming': () => movie(folder, 'a.ismv', '-f', 'ismv'),
    'M4A with a cover': () => {
      ffmpeg(folder, 'cover.png', '-f', 'lavfi', '-i', 'testsrc=size=64x64', '-frames:v', '1');
      const inputs = ['-i', 'cover.png', '-map', '0', '-map', '1', '-c:v', 'png', '-disposition:v', 'attached_pic'];
      return sound(folder, 'a.m4a', ...inputs, '-c:a', 'aac');
    },
    'MP4, chapters and subtitles': () => {
      writeFileSync(path.join(folder, 'a.srt'), '1\n00:00:00,100 --> 00:00:01,000\nHello\n');
      const chapter = '[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=1000\ntitle=One\n';
      writeFileSync(path.join(folder, 'a.txt'), `;FFMETADATA1\n${chapter}`);
      const inputs = ['-i', 'last.mp4', '-i', 'a.srt', '-i', 'a.txt', '-map', '0', '-map', '1', '-map_metadata', '2'];
      return ffmpeg(folder, 'a.mp4', ...inputs, '-c', 'copy', '-c:s', 'mov_text');
    },
  };
  for (const [what, make] of Object.entries(undemuxed)) {
    test(what, async () => void (await assertSigned(make(), { isDemuxed: false })));
  }
});

describe('signed movies from other muxers are valid, and every sample is the same', () => {
  const makers: Record<string, () => Promise<Buffer> | Buffer> = {
    'mediabunny, MP4, tables last': () => rewritten(last, new Mp4OutputFormat({ fastStart: false })),
    'mediabunny, MP4, tables first': () => rewritten(last, new Mp4OutputFormat({ fastStart: 'in-memory' })),
    'mediabunny, MP4, fragmented': () => rewritten(last, new Mp4OutputFormat({ fastStart: 'fragmented' })),
    'mediabunny, MOV': () => rewritten(last, new MovOutputFormat({ fastStart: false })),
    'shaka-packager, video with an index': () => packaged(folder, last, 'video'),
    'shaka-packager, sound with an index': () => packaged(folder, last, 'audio'),
  };
  for (const [what, make] of Object.entries(makers)) {
    test(what, async () => void (await assertSigned(await make())));
  }
});

describe('signed movies in rare forms are valid, and every sample is the same', () => {
  /** Gives another form to the `mdat` box and what comes before and after it, at the end of the file. */
  const withMdat = (edit: (content: Buffer) => Buffer[]) => {
    const mdat = find(first, 'mdat');
    return Buffer.concat([first.subarray(0, mdat.offset), ...edit(mdat.bytes.subarray(8))]);
  };
  const largeMdat = (content: Buffer) =>
    Buffer.concat([u32(1), Buffer.from('mdat'), u64(content.length + 16), content]);
  /** The 8 bytes before the content become part of its header, so that nothing moves. */
  const withLargeMdat = (more: number) => {
    const { offset, bytes } = find(last, 'mdat');
    assert.equal(boxesOf(last).find((found) => found.offset === offset - 8)?.type, 'free');
    const content = Buffer.concat([bytes.subarray(8), randomBytes(more)]);
    return Buffer.concat([last.subarray(0, offset - 8), largeMdat(content), last.subarray(offset + bytes.length)]);
  };
  const makers: Record<string, () => Buffer> = {
    'a media box up to the end of the file': () => withMdat((content) => [u32(0), Buffer.from('mdat'), content]),
    'a media box with a 64-bit size': () => withLargeMdat(0),
    'several media boxes': () =>
      withMdat((content) => [box('mdat', content), box('mdat', randomBytes(999)), box('mdat')]),
    'up to 7 bytes behind the last box': () => Buffer.concat([first, Buffer.from('1234567')]),
    'zeros behind the last box': () => Buffer.concat([first, Buffer.alloc(100)]),
    'an ID3v1 tag behind the last box': () => Buffer.concat([first, Buffer.from('TAG'), Buffer.alloc(125, 'x')]),
  };
  for (const [what, make] of Object.entries(makers)) {
    test(what, async () => void (await assertSigned(make())));
  }

  test('no ftyp box', async () => {
    const mov = movie(folder, 'a.mov');
    const ftyp = find(mov, 'ftyp').bytes;
    // `wide` is there for a size in 64 bits; here it makes up for the missing box, so that nothing moves.
    const input = Buffer.concat([box('wide', Buffer.alloc(ftyp.length - 8)), mov.subarray(ftyp.length)]);
    const output = await assertSigned(input, { isDemuxed: false });
    assert.deepEqual(
      boxesOf(output)
        .slice(0, 3)
        .map(({ type }) => type),
      ['ftyp', 'uuid', 'wide'],
    );
  });

  test('a large media box, which is bound by a Merkle tree', async () => {
    const filled = (content: Buffer) => Buffer.concat([content, randomBytes(17 * 1024 * 1024 + 5)]);
    const forms = {
      compact: withMdat((content) => [box('mdat', filled(content)), box('free')]),
      'to the end': withMdat((content) => [u32(0), Buffer.from('mdat'), filled(content)]),
      large: withLargeMdat(17 * 1024 * 1024),
    };
    for (const [what, input] of Object.entries(forms)) {
      const layout = await isobmff.readLayout(memorySource(input), new AbortController().signal);
      assert.ok('merkle' in isobmff.placeholderBinding(layout).data, what);
      await assertSigned(input);
    }
  });
});

describe('a signed movie', () => {
  test('can be signed again and again', async () => {
    for (const input of [last, movie(folder, 'a.mp4', '-movflags', 'frag_keyframe+empty_moov')]) {
      const once = await signBytes(isobmff, input);
      const twice = await assertSigned(once);
      assert.equal(twice.length, once.length);
      assert.equal(findAll(twice, 'uuid').length, 1);
    }
  });

  test('is invalid when any bit of it is changed', async () => {
    const mdat = find(first, 'mdat');
    const merkle = Buffer.concat([
      first.subarray(0, mdat.offset),
      box('mdat', mdat.bytes.subarray(8), randomBytes(2 ** 24)),
    ]);
    for (const input of [first, merkle]) {
      const output = await signBytes(isobmff, input);
      const moov = find(output, 'moov');
      const media = find(output, 'mdat');
      const places = [moov.offset + 100, media.offset + 8, media.offset + 15, media.offset + 16, output.length - 1];
      for (const place of places) {
        const changed = Buffer.from(output);
        changed[place] = (changed[place] ?? 0) ^ 1;
        const { statuses } = await readNatively(changed, 'video/mp4');
        assert.ok(statuses.includes('assertion.bmffHash.mismatch'), `byte ${place} of ${output.length}`);
      }
    }
  });
});
