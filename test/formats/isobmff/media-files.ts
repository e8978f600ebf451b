import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ALL_FORMATS, BufferSource, EncodedPacketSink, Input } from 'mediabunny';
import { run } from '../judges.ts';

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc=size=96x64:rate=25:duration=2'];
const SOUND = ['-f', 'lavfi', '-i', 'sine=duration=2:sample_rate=16000'];
const ENCODED = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '10', '-c:a', 'aac', '-b:a', '32k', '-shortest'];

/** Makes a movie with ffmpeg, and returns its bytes. */
export function movie(folder: string, name: string, ...options: readonly string[]): Buffer {
  return ffmpeg(folder, name, ...VIDEO, ...SOUND, ...ENCODED, ...options);
}

export function sound(folder: string, name: string, ...options: readonly string[]): Buffer {
  return ffmpeg(folder, name, ...SOUND, ...options);
}

export function ffmpeg(folder: string, name: string, ...options: readonly string[]): Buffer {
  run(folder, 'ffmpeg', '-v', 'error', '-y', ...options, '-bitexact', name);
  return readFileSync(path.join(folder, name));
}

/** Every sample of every track with its times, as mediabunny finds it, a demuxer that shares no code with ours. */
export async function samplesOf(bytes: Buffer): Promise<unknown[]> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const samples: unknown[] = [];
  for (const track of await input.getTracks()) {
    for await (const packet of new EncodedPacketSink(track).packets()) {
      const { timestamp, duration, type, data } = packet;
      samples.push({ track: track.id, timestamp, duration, type, data: Buffer.from(data).toString('base64') });
    }
  }
  if (samples.length === 0) throw new Error('there are no samples');
  return samples;
}
