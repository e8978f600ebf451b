import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { formatOf } from '#formats/formats.ts';
import { riff } from '#formats/riff/riff.ts';
import { assertValid, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { refusalOf } from '../../support/memory-bytes.ts';

const folder = mediaFolder();
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
