import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { riff } from '#formats/riff/riff.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';

describe('signed WAV files', () => {
  const folder = mediaFolder();
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
