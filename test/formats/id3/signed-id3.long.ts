import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { id3 } from '#formats/id3/id3.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { footer, frame, manifestObject, tag, text, unsynchronised } from './tag-bytes.ts';

const folder = mediaFolder();
const tone = ['-v', 'error', '-y', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1'];

const MEDIA_TYPES = { mp3: 'audio/mpeg', flac: 'audio/flac' };

async function assertSignable(input: Buffer, extension: keyof typeof MEDIA_TYPES = 'mp3'): Promise<Buffer> {
  assert.equal(formatOf(input.subarray(0, 65_536)), id3);
  const output = await signBytes(id3, input);
  await assertValid(output, MEDIA_TYPES[extension]);
  assert.equal(decodedMd5(folder, output, extension), decodedMd5(folder, input, extension));
  return output;
}

function file(name: string): Buffer {
  return readFileSync(path.join(folder, name));
}

before(() => {
  run(folder, 'ffmpeg', ...tone, 'tone.wav');
  run(folder, 'ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc=size=320x240', '-frames:v', '1', 'cover.png');
  run(folder, 'lame', '--quiet', '-t', '--id3v1-only', 'tone.wav', 'bare.mp3');
});

describe('signed MP3 files from encoders are valid and sound the same', () => {
  const encoders: Record<string, string[]> = {
    'lame, v2.3 tag, picture': [
      'lame',
      '--quiet',
      '--add-id3v2',
      '--tt',
      'Ein Tön',
      '--ti',
      'cover.png',
      'tone.wav',
      'a.mp3',
    ],
    'lame, v2.3 tag, v1 tag, padding': ['lame', '--quiet', '--pad-id3v2', '--tt', 'T', 'tone.wav', 'a.mp3'],
    'lame, no tag, variable bit rate': ['lame', '--quiet', '-V', '4', 'tone.wav', 'a.mp3'],
    'lame, MPEG-2.5 at 8 kHz': ['lame', '--quiet', '--resample', '8', '-b', '16', 'tone.wav', 'a.mp3'],
    'ffmpeg, v2.4 tag': ['ffmpeg', ...tone, '-metadata', 'title=T', '-id3v2_version', '4', 'a.mp3'],
    'ffmpeg, v2.3 tag': ['ffmpeg', ...tone, '-metadata', 'title=T', '-id3v2_version', '3', 'a.mp3'],
    'ffmpeg, layer II': ['ffmpeg', ...tone, '-c:a', 'mp2', '-f', 'mp2', 'a.mp3'],
  };
  for (const [what, [tool = '', ...args]] of Object.entries(encoders)) {
    test(what, async () => {
      run(folder, tool, ...args);
      await assertSignable(file('a.mp3'));
    });
  }
});

test('signed MP3 files with much in front of their first frame are valid and sound the same', async () => {
  run(folder, 'lame', '--quiet', '-t', 'tone.wav', 'a.mp3');
  for (const garbageBytes of [30_000, 1_000_000]) {
    const input = Buffer.concat([Buffer.alloc(garbageBytes, '\0not audio'), file('a.mp3')]);
    const output = await signBytes(id3, input);
    await assertValid(output, 'audio/mpeg');
    assert.equal(decodedMd5(folder, output, 'mp3'), decodedMd5(folder, input, 'mp3'));
  }
});

describe('signed MP3 files that state no bit rate (free format) are valid and sound the same', () => {
  for (const kbits of ['128', '201', '640']) {
    test(`${kbits} kbit/s`, async () => {
      run(folder, 'lame', '--quiet', '--freeformat', '-b', kbits, 'tone.wav', 'free.mp3');
      for (const input of [file('free.mp3'), Buffer.concat([tag(3, frame(3, 'TIT2', text('x'))), file('free.mp3')])]) {
        assert.equal(formatOf(input.subarray(0, 65_536)), id3);
        const output = await signBytes(id3, input);
        await assertValid(output, 'audio/mpeg');
        assert.deepEqual(decodedByLame(output), decodedByLame(input));
      }
    });
  }
});

/** ffmpeg does not play free format. */
function decodedByLame(bytes: Buffer): Buffer {
  writeFileSync(path.join(folder, 'decoded.mp3'), bytes);
  run(folder, 'lame', '--quiet', '--decode', 'decoded.mp3', 'decoded.wav');
  return file('decoded.wav');
}

describe('signed MP3 files with peculiar tags are valid and sound the same', () => {
  const long = text('a'.repeat(300));
  const tags: Record<string, () => Buffer> = {
    'v2.2': () => tag(2, Buffer.concat([frame(2, 'TT2', text('old')), Buffer.alloc(50)])),
    'v2.2, unsynchronised': () => tag(2, unsynchronised(frame(2, 'TT2', text('\xff\xfb\x90'))), { flags: 0x80 }),
    'v2.3, unsynchronised': () => tag(3, unsynchronised(frame(3, 'TIT2', text('\xff\xfb\x90'))), { flags: 0x80 }),
    'v2.3, extended header': () =>
      tag(
        3,
        Buffer.concat([Buffer.from([0, 0, 0, 6, 0, 0, 0, 0, 0, 5]), frame(3, 'TIT2', text('x')), Buffer.alloc(5)]),
        {
          flags: 0x40,
        },
      ),
    'v2.3, syncsafe frame sizes': () =>
      tag(3, Buffer.concat([frame(3, 'TIT2', long, { wrongSize: true }), frame(3, 'TPE1', text('x'))])),
    'v2.4, plain frame sizes': () =>
      tag(4, Buffer.concat([frame(4, 'TIT2', long, { wrongSize: true }), frame(4, 'TPE1', text('x'))])),
    'v2.4, extended header with a checksum': () =>
      tag(4, Buffer.concat([Buffer.from([0, 0, 0, 12, 1, 0x20, 5, 1, 2, 3, 4, 5]), frame(4, 'TIT2', text('x'))]), {
        flags: 0x40,
      }),
    'v2.4, extended header': () =>
      tag(4, Buffer.concat([Buffer.from([0, 0, 0, 6, 1, 0]), frame(4, 'TIT2', text('x'))]), { flags: 0x40 }),
    'v2.4, footer': () => {
      const bytes = tag(4, frame(4, 'TIT2', text('x')), { flags: 0x10 });
      return Buffer.concat([bytes, footer(bytes)]);
    },
    'v2.4, all frames unsynchronised': () =>
      tag(4, Buffer.concat([frame(4, 'TIT2', unsynchronised(text('\xff\xfb\x90')))]), { flags: 0x80 }),
    'v2.4, one frame unsynchronised': () =>
      tag(4, frame(4, 'TIT2', unsynchronised(text('\xff\xfb\x90')), { flags: 2 })),
    'unknown flags': () => tag(4, frame(4, 'TIT2', text('x')), { flags: 0x07 }),
    'an empty frame': () => tag(4, Buffer.concat([frame(4, 'TIT2', Buffer.alloc(0)), frame(4, 'TPE1', text('x'))])),
    'bytes that are no frame': () => tag(3, Buffer.concat([frame(3, 'TIT2', text('x')), Buffer.alloc(50, 0xee)])),
    'a frame longer than the tag': () =>
      tag(3, Buffer.concat([frame(3, 'TIT2', text('x')), frame(3, 'TPE1', Buffer.alloc(40, 'x')).subarray(0, 30)])),
    'two tags in a row': () =>
      Buffer.concat([tag(3, frame(3, 'TIT2', text('x'))), tag(4, frame(4, 'TIT2', text('y')))]),
    'two old manifests': () =>
      tag(
        4,
        Buffer.concat([
          frame(4, 'GEOB', manifestObject('old manifest 1')),
          frame(4, 'TIT2', text('x')),
          frame(4, 'GEOB', manifestObject('old manifest 2', 'application/x-c2pa-manifest-store')),
        ]),
      ),
    'an old manifest in a second tag': () =>
      Buffer.concat([tag(3, frame(3, 'TIT2', text('x'))), tag(4, frame(4, 'GEOB', manifestObject('old manifest 1')))]),
    'silence before the first frame': () => Buffer.concat([tag(3, frame(3, 'TIT2', text('x'))), Buffer.alloc(1000)]),
    'no tag, garbage before the first frame': () => Buffer.alloc(700, 0xaa),
  };
  for (const [what, makeTags] of Object.entries(tags)) {
    test(what, async () => {
      const output = await assertSignable(Buffer.concat([makeTags(), file('bare.mp3')]));
      assert.equal(output.indexOf('old manifest'), -1);
    });
  }

  test('what was signed before, again and again', async () => {
    const once = await assertSignable(file('bare.mp3'));
    const twice = await assertSignable(once);
    assert.equal(twice.length, once.length);
  });
});

describe('signed FLAC files are valid and sound the same', () => {
  before(() => {
    run(folder, 'flac', '--silent', '--tag=TITLE=A tone', 'tone.wav', '-o', 'flac.flac');
    run(folder, 'ffmpeg', '-v', 'error', '-i', 'tone.wav', '-metadata', 'title=T', 'ffmpeg.flac');
    run(folder, 'sox', 'tone.wav', '-b', '24', 'sox.flac');
  });

  for (const encoder of ['flac', 'ffmpeg', 'sox']) {
    test(`from ${encoder}`, async () => {
      const output = await assertSignable(file(`${encoder}.flac`), 'flac');
      await assertSignable(output, 'flac');
    });
  }

  test('the reference decoder accepts them and finds the audio unchanged', async () => {
    const output = await signBytes(id3, file('flac.flac'));
    writeFileSync(path.join(folder, 'signed.flac'), output);
    run(folder, 'flac', '--silent', '--test', 'signed.flac');
  });

  test('with a tag in front, its frames kept and its old manifest gone', async () => {
    const old = tag(
      3,
      Buffer.concat([frame(3, 'GEOB', manifestObject('old manifest')), frame(3, 'TIT2', text('kept'))]),
    );
    const output = await assertSignable(Buffer.concat([old, file('flac.flac')]), 'flac');
    assert.equal(output.indexOf('old manifest'), -1);
    assert.notEqual(output.indexOf('kept'), -1);
  });

  test('with a tag that ends with a footer', async () => {
    const old = tag(4, frame(4, 'TIT2', text('kept')), { flags: 0x10 });
    await assertSignable(Buffer.concat([old, footer(old), file('flac.flac')]), 'flac');
  });
});
