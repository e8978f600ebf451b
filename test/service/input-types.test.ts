import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type RunningService, startService } from '../../scripts/running-service.ts';

const SAMPLES = join(import.meta.dirname, '../../samples');
const folder = mkdtempSync(join(tmpdir(), 'attestream-input-types-'));
const media = join(folder, 'media');

/** Files whose name says nothing of their format, or something else. */
const FILES = [
  'film.mp4',
  'film.m4v',
  'film.wav',
  'speech.mp4',
  'film',
  'speech',
  'song',
  'get.php',
  'wave',
  'webm',
  'text.bin',
];

let service: RunningService;

before(async () => {
  mkdirSync(media);
  const sample = (name: string, as: string) => copyFileSync(join(SAMPLES, name), join(media, as));
  for (const name of ['film.mp4', 'film.m4v', 'film.wav']) sample('evening-light.mp4', name);
  for (const name of ['song', 'get.php']) sample('four-notes.mp3', name);
  sample('evening-light.de.m4a', 'speech.mp4');
  convert('evening-light.mp4', 'mov', 'film', '-c', 'copy');
  convert('evening-light.de.m4a', 'mov', 'speech', '-c', 'copy');
  convert('four-notes.mp3', 'wav', 'wave');
  convert('four-notes.mp3', 'webm', 'webm', '-c:a', 'libopus');
  writeFileSync(join(media, 'text.bin'), 'no media at all');
  service = await startService({ folder: join(folder, 'service') });
});

after(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Has ffmpeg write a sample anew, and takes the extension away. */
function convert(sample: string, extension: string, as: string, ...options: string[]): void {
  const made = join(folder, `made.${extension}`);
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', join(SAMPLES, sample), ...options, made]);
  renameSync(made, join(media, as));
}

/** Signs every file at an endpoint and returns the name of its output, or the reason that there is none. */
async function signAll(endpoint: 'audio' | 'video', names: readonly string[]): Promise<Record<string, string>> {
  const { results } = await service.runSync(`/v2/sync/c2pa/${endpoint}`, {
    inputs: names.map((name) => ({ type: 'local_file_path', path: join(media, name) })),
    output: { type: 'local', name: endpoint },
  });
  for (const { status, error_code: code } of results)
    assert.equal(code, status === 'failed' ? 'INVALID_INPUT_TYPE' : undefined);
  const ends = results.map(({ output_path: output, error_details: details }) =>
    output ? basename(output) : details?.reason,
  );
  return Object.fromEntries(names.map((name, index) => [name, ends[index] ?? 'nothing']));
}

describe('What an input is, where its name does not say, is told from its bytes', () => {
  test('on the audio endpoint, which refuses what holds video and containers that it does not sign', async () => {
    assert.deepEqual(await signAll('audio', FILES), {
      'film.mp4': 'AUDIO_HAS_VIDEO',
      'film.m4v': 'AUDIO_HAS_VIDEO',
      'film.wav': 'AUDIO_HAS_VIDEO',
      'speech.mp4': 'speech_c2pa.mp4',
      film: 'AUDIO_HAS_VIDEO',
      speech: 'AUDIO_CONTAINER_UNSUPPORTED',
      song: 'song_c2pa.mp3',
      'get.php': 'get_c2pa.mp3',
      wave: 'wave_c2pa.wav',
      webm: 'FORMAT_UNKNOWN',
      'text.bin': 'FORMAT_UNKNOWN',
    });
  });

  test('on the video endpoint, which takes an MP4 without video, and no container that never holds any', async () => {
    const names = FILES.filter((name) => name !== 'film.wav');
    assert.deepEqual(await signAll('video', names), {
      'film.mp4': 'film_c2pa.mp4',
      'film.m4v': 'film_c2pa.m4v',
      'speech.mp4': 'speech_c2pa.mp4',
      film: 'film_c2pa.mov',
      speech: 'speech_c2pa.mov',
      song: 'VIDEO_IS_AUDIO_FILE',
      'get.php': 'VIDEO_IS_AUDIO_FILE',
      wave: 'VIDEO_IS_AUDIO_FILE',
      webm: 'FORMAT_UNKNOWN',
      'text.bin': 'FORMAT_UNKNOWN',
    });
  });
});
