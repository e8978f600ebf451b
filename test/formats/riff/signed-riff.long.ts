import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { riff } from '#formats/riff/riff.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { refusalOf } from '../../support/memory-bytes.ts';

const folder = mediaFolder();

describe('signed WAV files', () => {
  const tone = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1'];
  const make: Record<string, () => void> = {
    'plain PCM from ffmpeg': () => run(folder, 'ffmpeg', ...tone, '-metadata', 'title=A tone', '-y', 'a.wav'),
    'float with a fmt extension and a bext chunk from ffmpeg': () =>
      run(
        folder,
        'ffmpeg',
        ...tone,
        '-ac',
        '6',
        '-c:a',
        'pcm_f32le',
        '-write_bext',
        '1',
        '-metadata',
        'description=x',
        '-y',
        'a.wav',
      ),
    'an odd number of samples of 8 bits from sox': () =>
      run(folder, 'sox', '-n', '-b', '8', '-c', '1', 'a.wav', 'synth', '8001s', 'sine', '300'),
    'ADPCM with a fact chunk from sox': () =>
      run(folder, 'sox', '-n', '-e', 'ms-adpcm', 'a.wav', 'synth', '0.5', 'sine', '300'),
  };

  for (const [what, makeFile] of Object.entries(make)) {
    test(`are valid and sound the same: ${what}`, async () => {
      makeFile();
      const input = readFileSync(path.join(folder, 'a.wav'));
      assert.equal(formatOf(input.subarray(0, 65_536)), riff);
      for (const slackBytes of [100, 101]) {
        const output = await signBytes(riff, input, { slackBytes });
        await assertValid(output, 'audio/wav');
        assert.equal(decodedMd5(folder, output, 'wav'), decodedMd5(folder, input, 'wav'));
      }
    });
  }

  test('can be signed again and again', async () => {
    run(folder, 'sox', '-n', '-b', '16', 'a.wav', 'synth', '0.2', 'sine', '300');
    const once = await signBytes(riff, readFileSync(path.join(folder, 'a.wav')));
    const twice = await signBytes(riff, once);
    await assertValid(twice, 'audio/wav');
    assert.equal(twice.length, once.length);
  });

  test('are made from what ffmpeg or sox wrote to a pipe, and sound the same', async () => {
    const fromFfmpeg = run(folder, 'ffmpeg', ...tone, '-f', 'wav', '-');
    const fromSox = run(folder, 'sox', '-n', '-b', '16', '-t', 'wav', '-', 'synth', '0.2', 'sine', '300');
    for (const input of [fromFfmpeg, fromSox]) {
      const output = await signBytes(riff, input);
      await assertValid(output, 'audio/wav');
      assert.equal(decodedMd5(folder, output, 'wav'), decodedMd5(folder, input, 'wav'));
    }
  });
});

const SOURCE = ['-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc=size=160x120:rate=10:duration=1'];
const TONE = ['-f', 'lavfi', '-i', 'sine=frequency=440:duration=1'];

/** MD5s of every packet of an AVI file, in order, as ffmpeg finds them; `seek` goes by the index. */
function packets(bytes: Uint8Array, seek: readonly string[] = []): string {
  writeFileSync(path.join(folder, 'judged.avi'), bytes);
  const args = ['-v', 'error', ...seek, '-i', 'judged.avi', '-map', '0', '-c', 'copy', '-f', 'framemd5', '-'];
  return run(folder, 'ffmpeg', ...args).toString('utf8');
}

function make(...args: string[]): Buffer {
  run(folder, 'ffmpeg', ...SOURCE, ...TONE, ...args, 'a.avi');
  return readFileSync(path.join(folder, 'a.avi'));
}

describe('signed AVI files', () => {
  for (const [what, args] of Object.entries({
    'MPEG-4 and MP3': ['-c:v', 'mpeg4', '-c:a', 'libmp3lame'],
    'Motion JPEG and PCM': ['-c:v', 'mjpeg', '-c:a', 'pcm_s16le'],
  })) {
    test(`are valid and hold the same packets: ${what}`, async () => {
      const input = make(...args);
      assert.equal(formatOf(input.subarray(0, 65_536)), riff);
      for (const slackBytes of [100, 101]) {
        const output = await signBytes(riff, input, { slackBytes });
        await assertValid(output, 'video/x-msvideo');
        assert.equal(packets(output), packets(input));
        assert.equal(packets(output, ['-ss', '0.5']), packets(input, ['-ss', '0.5']));
      }
    });
  }

  test('can be signed again and again', async () => {
    const once = await signBytes(riff, make('-c:v', 'mpeg4', '-c:a', 'libmp3lame'));
    const twice = await signBytes(riff, once);
    await assertValid(twice, 'video/x-msvideo');
    assert.equal(twice.length, once.length);
  });

  test('are not made where media would move: behind an old manifest, or in a second RIFF chunk', async () => {
    const input = make('-c:v', 'mpeg4', '-c:a', 'libmp3lame');
    const old = Buffer.from('4332504104000000616c7400', 'hex');
    const front = Buffer.concat([input.subarray(0, 12), old, input.subarray(12)]);
    front.writeUInt32LE(input.readUInt32LE(4) + old.length, 4);
    assert.equal(await refusalOf(riff, front), 'AVI_MEDIA_WOULD_MOVE');
    const second = Buffer.from('524946460400000041564958', 'hex');
    assert.equal(await refusalOf(riff, Buffer.concat([input, second])), 'AVI_MEDIA_WOULD_MOVE');
    assert.equal(await refusalOf(riff, input.subarray(0, 12)), 'RIFF_CHUNK_MISSING');
  });
});
