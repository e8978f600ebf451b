import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { beginsWithText, startsLikeText } from '#formats/text-beginning.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { frame, mpegFrames, tag, text } from './id3/tag-bytes.ts';

function begins(...parts: Buffer[]): Promise<boolean> {
  return beginsWithText(memorySource(Buffer.concat(parts)), new AbortController().signal);
}

describe('a file starts like text', () => {
  const TEXTS: Readonly<Record<string, string>> = {
    'a list of ffmpeg': 'ffconcat version 1.0\nfile other.mov\n',
    'one that is no text behind its mark': 'ffconcat\0\0\0\0\0\0\0\0\xff\xfb',
    'a playlist': '#EXTM3U\n\x80\x80\x80\x80\x80\x80\x80\x80',
    'a playlist behind white space': '\r\n \t#EXTM3U\n\x80\x80',
    'an MPD': '<?xml version="1.0"?><MPD/>',
    'an MPD behind a comment': '<!--\xe9\xe8-->\n<MPD/>',
    'a list of names in UTF-8': '\xc3\xa9.mp4\n',
    subtitles: 'WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n',
    'a byte order mark': '\xef\xbb\xbf\xc3\xa9',
    'UTF-16': '\xff\xfea\0b\0',
    'a session for ffmpeg behind other bytes': '\x01\x02\x80\nc=IN IP4 192.0.2.1\nm=audio 5004 RTP/AVP 0\n',
    'one with other ends of lines': '\x01\n\rc=IN IP6 ::1\n',
    'a few letters': 'notes',
  };
  for (const [what, start] of Object.entries(TEXTS)) {
    test(`where it is ${what}`, () => assert.ok(startsLikeText(Buffer.from(start, 'latin1'))));
  }

  test('but not where it holds media behind a header in letters, or none', () => {
    for (const start of [
      'YUV4MPEG2 W320 H180 F25:1\nFRAME\n',
      'Creative Voice File\x1a',
      'nut/multimedia container\0',
      'NIST_1A\n   1024\nsample_rate -i 16000\n',
      '#!AMR\n\x3c\x91\x17\x16\xbe\x66\x79\xe1\xe0\x01',
      'APETAGEX\xd0\x07\0\0\x40\0\0\0',
      '%PDF-1.3\n1 0 obj\n<<',
      'LAME3.100UUUUUUUUUUUUUUU',
      'UUUUUUUUUUUUUUUUUUUU',
      '%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1',
      '\xff\xfe\x44\x00\x91\x17\x16',
      '\x01\0\nc=IN IP4',
      '\0\0\0\0',
      '',
    ]) {
      assert.ok(!startsLikeText(Buffer.from(start, 'latin1')), start);
    }
  });

  test('behind tags, with a footer or without, that players pass over', async () => {
    const list = Buffer.from('ffconcat version 1.0\n');
    const title = tag(4, frame(4, 'TIT2', text('x')));
    for (const start of [
      [],
      [title],
      [title, title],
      [tag(3, Buffer.alloc(20), { flags: 0x10 }), Buffer.alloc(10)],
      [tag(4, Buffer.alloc(20), { flags: 0x10 }), Buffer.alloc(10)],
      Array<Buffer>(17).fill(title),
    ]) {
      assert.ok(await begins(...start, list));
      assert.ok(start.length > 16 || !(await begins(...start, mpegFrames(8))));
    }
    for (const other of [
      [title],
      [title, Buffer.from([1, 2])],
      [title, Buffer.alloc(10), list],
      [title.subarray(0, 12)],
      [title.subarray(0, 5)],
      [],
    ])
      assert.ok(!(await begins(...other)));
  });
});
