import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { id3 } from '#formats/id3/id3.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { embed } from '../../support/memory-bytes.ts';
import { frame, frames, manifestObject, mpegFrames, picture, tag, text } from './tag-bytes.ts';

const latin1 = (content: string): Buffer => Buffer.from(content, 'latin1');

const chapter = (...nested: Buffer[]): Buffer => Buffer.concat([latin1('c\0'), Buffer.alloc(16), ...nested]);

/** Frames that the official readers give up a whole tag at. */
const unreadable: Record<string, Buffer> = {
  'an encrypted frame': frame(4, 'TALB', text('x'), { flags: 0x04 }),
  'a frame of a group': frame(4, 'TALB', latin1('\x01\0x'), { flags: 0x40 }),
  'a compressed manifest': frame(4, 'GEOB', Buffer.concat([Buffer.alloc(4), deflateSync(manifestObject('x'))]), {
    flags: 0x09,
  }),
  'a text in an encoding that does not exist': frame(4, 'TALB', latin1('\x07x')),
  'a text that is no UTF-8': frame(4, 'TALB', latin1('\x03\xe4')),
  'a text that is no UTF-16': frame(4, 'TALB', latin1('\x01\xff\xfe\x00\xd8')),
  'half a character of UTF-16': frame(4, 'TALB', latin1('\x01\xff')),
  'a URL that is no UTF-8': frame(4, 'WOAR', latin1('http://\xe4')),
  'a comment without an end of its description': frame(4, 'COMM', latin1('\0engx')),
  'a comment that is too short': frame(4, 'COMM', latin1('\0e')),
  'a custom text without an end of its name': frame(4, 'TXXX', latin1('\0x')),
  'a picture without an end of its media type': frame(4, 'APIC', latin1('\0image/png')),
  'a rating without an address': frame(4, 'POPM', latin1('x')),
  'lyrics in UTF-8': frame(4, 'SYLT', latin1('\x03eng\x02\x01d\0hey\0\0\0\0\x01')),
  'lyrics without a time stamp': frame(4, 'SYLT', latin1('\0eng\x02\x01d\0hey\0\0\0')),
  'a lookup table without bits': frame(4, 'MLLT', Buffer.alloc(12)),
  'a chapter with a frame that cannot be decoded': frame(4, 'CHAP', chapter(frame(4, 'TIT2', latin1('\x07x')))),
  'a chapter without times': frame(4, 'CHAP', latin1('c\0\0\0')),
  'a table of contents that ends early': frame(4, 'CTOC', latin1('c\0\x03\x05ch\0')),
  'private data without an owner': frame(4, 'PRIV', latin1('x')),
};

/** Frames that are unusual, and that the official readers decode. */
const readable: Record<string, Buffer> = {
  'a text of several values': frame(4, 'TPE1', latin1('\x03a\0b\0')),
  'an empty UTF-16 text': frame(4, 'TALB', latin1('\x01')),
  'UTF-16 without a byte order mark': frame(4, 'TALB', latin1('\x01\0a\0b')),
  'a chapter with a title and a picture': frame(
    4,
    'CHAP',
    chapter(frame(4, 'TIT2', text('x')), frame(4, 'APIC', picture(70_000))),
  ),
  'a chapter without frames': frame(4, 'CHAP', chapter()),
  'a table of contents': frame(4, 'CTOC', Buffer.concat([latin1('c\0\x03\x02a\0b\0'), frame(4, 'TIT2', text('x'))])),
  'lyrics with time stamps': frame(4, 'SYLT', latin1('\0eng\x02\x01d\0hey\0\0\0\0\x01ho\0\0\0\0\x02')),
  'people and their roles': frame(4, 'TIPL', latin1('\x01\xff\xfea\0\0\0\xff\xfeb\0')),
  'a frame nobody knows': frame(4, 'XYZ1', latin1('\xff\xff')),
};

describe('frames that C2PA readers cannot decode', () => {
  const folder = mediaFolder();
  let audio: Buffer = Buffer.alloc(0);
  let audioMd5 = '';
  before(() => {
    run(folder, 'ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'sine=duration=1', 'tone.wav');
    run(folder, 'lame', '--quiet', '-t', '--id3v1-only', 'tone.wav', 'bare.mp3');
    audio = readFileSync(path.join(folder, 'bare.mp3'));
    audioMd5 = decodedMd5(folder, audio, 'mp3');
  });

  for (const [what, odd] of Object.entries(unreadable)) {
    test(`move to a second tag, so that the manifest is found: ${what}`, async () => {
      const title = frame(4, 'TIT2', text('Title'));
      const input = Buffer.concat([tag(4, Buffer.concat([title, odd, frame(4, 'TPE1', text('Artist'))])), audio]);
      const output = await signBytes(id3, input);
      await assertValid(output, 'audio/mpeg');
      assert.equal(decodedMd5(folder, output, 'mp3'), audioMd5);
      assert.ok(output.includes(tag(4, odd)));
      writeFileSync(path.join(folder, 'signed.mp3'), output);
      const probe = run(folder, 'ffprobe', '-v', 'error', '-show_entries', 'format_tags=title,artist', 'signed.mp3');
      assert.match(probe.toString(), /title=Title\n.*artist=Artist/);
    });
  }

  for (const [what, odd] of Object.entries(readable)) {
    test(`are not taken for such: ${what}`, async () => {
      const input = Buffer.concat([tag(4, odd), audio]);
      const output = await signBytes(id3, input);
      await assertValid(output, 'audio/mpeg');
      const { output: embedded } = await embed(id3, Buffer.concat([tag(4, odd), mpegFrames(4)]), Buffer.from('x'));
      assert.equal(frames(embedded.subarray(0, -4 * 417)).length, 2);
      assert.ok(!embedded.includes(tag(4, odd)));
    });
  }
});
