import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { HEAD_SIZE_BYTES } from '#formats/format-handler.ts';
import { formatOf, recogniseFormat } from '#formats/formats.ts';
import { id3 } from '#formats/id3/id3.ts';
import { mediaFolder, run } from '../../support/judges/file-judges.ts';
import { memorySource, refusalOf } from '../../support/memory-bytes.ts';
import { frame, mpegFrames, picture, tag, text } from './tag-bytes.ts';

const AUDIO = mpegFrames(8);
const TITLE = tag(4, frame(4, 'TIT2', text('x')));

function isClaimed(bytes: Buffer): boolean {
  return formatOf(bytes.subarray(0, HEAD_SIZE_BYTES)) === id3;
}

describe('MPEG audio is recognised', () => {
  test('by frames that follow each other, at the start or behind a tag', () => {
    assert.ok(isClaimed(AUDIO));
    assert.ok(isClaimed(Buffer.concat([TITLE, AUDIO])));
    assert.ok(isClaimed(mpegFrames(1)));
  });

  test('behind some garbage, if enough frames follow each other', () => {
    assert.ok(isClaimed(Buffer.concat([Buffer.alloc(3000, 0xff), AUDIO])));
    assert.ok(!isClaimed(Buffer.concat([Buffer.alloc(3000, 1), mpegFrames(2), Buffer.alloc(3000, 1)])));
    assert.ok(isClaimed(Buffer.concat([Buffer.alloc(20_000, 1), AUDIO])));
    assert.ok(!isClaimed(Buffer.concat([Buffer.alloc(20_000, 1), mpegFrames(3)])));
  });

  test('behind a MiB of garbage, if many frames follow each other', async () => {
    const { signal } = new AbortController();
    const recognised = (...parts: Buffer[]) => recogniseFormat(memorySource(Buffer.concat(parts)), signal);
    const garbage = Buffer.alloc(1_000_000, 1);
    assert.equal(await recognised(garbage, mpegFrames(40)), id3);
    assert.equal(await recognised(Buffer.alloc(20_000, 1), mpegFrames(40)), id3);
    assert.equal(await recognised(garbage, mpegFrames(20), garbage), undefined);
    assert.equal(await recognised(garbage, garbage, mpegFrames(40)), undefined);
    const tagged = memorySource(Buffer.concat([TITLE, garbage, mpegFrames(40)]));
    assert.equal((await id3.readLayout(tagged, signal)).audioOffset, TITLE.length);
  });

  test('but not signed where players may read text between the tag and the first frame', async () => {
    for (const list of ['ffconcat version 1.0\nfile other.mov\n#', '#EXTM3U\n#EXT-X-TARGETDURATION:1\n', '<MPD>']) {
      for (const start of [TITLE, Buffer.alloc(0)]) {
        const input = Buffer.concat([start, Buffer.from(list), AUDIO]);
        assert.equal(await refusalOf(id3, input), 'ID3_AUDIO_BEHIND_TEXT', list);
      }
    }
    for (const garbage of [
      Buffer.alloc(300),
      Buffer.from([0x12, 0x80, 0x41, 0x42]),
      Buffer.from('APETAGEX\xd0', 'latin1'),
    ]) {
      assert.equal(await refusalOf(id3, Buffer.concat([TITLE, garbage, AUDIO])), 'accepted');
    }
  });

  test('behind a tag that the head does not reach the end of', async () => {
    const input = Buffer.concat([tag(4, frame(4, 'APIC', picture(100_000))), AUDIO]);
    assert.ok(isClaimed(input));
    const layout = await id3.readLayout(memorySource(input), new AbortController().signal);
    assert.equal(layout.mediaType, 'audio/mpeg');
  });

  test('of free format by frames of one size, and not by two headers alone', () => {
    const frameOf = (sizeBytes: number, padding: 0 | 2 = 0): Buffer => {
      const bytes = Buffer.alloc(sizeBytes + padding / 2, 1);
      bytes.set([0xff, 0xfb, padding]);
      return bytes;
    };
    assert.ok(isClaimed(Buffer.concat([frameOf(500), frameOf(500, 2), frameOf(500)])));
    assert.ok(isClaimed(Buffer.concat([frameOf(5_760), frameOf(5_760), frameOf(5_760)])));
    assert.ok(!isClaimed(Buffer.concat([frameOf(500), frameOf(500)])));
    assert.ok(!isClaimed(Buffer.concat([frameOf(500), frameOf(501), frameOf(500)])));
  });

  test('not in random bytes', () => {
    const random = fc.uint8Array({ minLength: 4000, maxLength: 8000 });
    fc.assert(
      fc.property(random, (bytes) => assert.ok(!isClaimed(Buffer.from(bytes)))),
      { numRuns: 200 },
    );
  });

  test('not in text that starts with the letters ID3', () => {
    assert.ok(!isClaimed(Buffer.from('ID3 is a format for tags. '.repeat(50))));
  });

  test('not in other containers that hold it, nor in AAC', async () => {
    const folder = mediaFolder();
    const source = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=duration=1'];
    const others: Record<string, string[]> = {
      'a.avi': ['-c:a', 'libmp3lame'],
      'a.mkv': ['-c:a', 'libmp3lame'],
      'a.flv': ['-c:a', 'libmp3lame'],
      'a.ts': ['-c:a', 'libmp3lame'],
      'a.asf': ['-c:a', 'libmp3lame'],
      'a.caf': ['-c:a', 'libmp3lame'],
      'a.w64': ['-c:a', 'libmp3lame'],
      'a.mov': ['-c:a', 'libmp3lame'],
      'a.wav': ['-c:a', 'libmp3lame'],
      'a.aac': ['-c:a', 'aac', '-f', 'adts'],
      'a.ogg': ['-c:a', 'libvorbis'],
      'a.mpg': ['-c:a', 'mp2', '-f', 'mpeg'],
      'a.vob': ['-c:a', 'mp2', '-f', 'vob'],
    };
    for (const [name, args] of Object.entries(others)) {
      run(folder, 'ffmpeg', ...source, ...args, name);
      const bytes = readFileSync(path.join(folder, name));
      assert.notEqual(await recogniseFormat(memorySource(bytes), new AbortController().signal), id3, name);
    }
    const aac = readFileSync(path.join(folder, 'a.aac'));
    assert.ok(!isClaimed(Buffer.concat([TITLE, aac])));
    const withPicture = Buffer.concat([tag(4, frame(4, 'APIC', picture(100_000))), aac]);
    assert.equal(await refusalOf(id3, withPicture), 'AUDIO_STREAM_UNKNOWN');
  });
});
