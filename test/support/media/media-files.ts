import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  Conversion,
  EncodedPacketSink,
  Input,
  Output,
  type OutputFormat,
} from 'mediabunny';
import { run } from '../judges/file-judges.ts';
import { makeMedia } from './make-media.ts';

const VIDEO = ['-f', 'lavfi', '-i', 'testsrc=size=96x64:rate=25:duration=1'];
const SOUND = ['-f', 'lavfi', '-i', 'sine=duration=1:sample_rate=16000'];
const ENCODED = ['-c:v', 'libx264', '-preset', 'ultrafast', '-g', '10', '-c:a', 'aac', '-b:a', '32k', '-shortest'];

/** Makes a movie with ffmpeg, and returns its bytes. */
export function movie(folder: string, name: string, ...options: readonly string[]): Buffer {
  return ffmpeg(folder, name, ...VIDEO, ...SOUND, ...ENCODED, ...options);
}

export function sound(folder: string, name: string, ...options: readonly string[]): Buffer {
  return ffmpeg(folder, name, ...SOUND, ...options);
}

export function ffmpeg(folder: string, name: string, ...options: readonly string[]): Buffer {
  makeMedia(folder, [...options, '-bitexact', name]);
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

/** Every packet of every stream with its times and a digest of its bytes, as ffmpeg finds it. */
export function packetsOf(folder: string, bytes: Buffer): string {
  writeFileSync(path.join(folder, 'packets.bin'), bytes);
  const packets = run(
    folder,
    'ffmpeg',
    '-v',
    'error',
    '-i',
    'packets.bin',
    '-map',
    '0',
    '-c',
    'copy',
    '-f',
    'framemd5',
    '-',
  );
  return packets.toString('utf8');
}

/** A movie written by mediabunny, which shares no code with ffmpeg, from the packets of another. */
export async function rewritten(input: Buffer, format: OutputFormat): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new Input({ source: new BufferSource(input), formats: ALL_FORMATS });
  const conversion = await Conversion.init({ input: source, output, showWarnings: false });
  await conversion.execute();
  if (target.buffer === null) throw new Error('nothing was written');
  return Buffer.from(target.buffer);
}

/** A movie or a part of one in a single file with a segment index, written by shaka-packager. */
export function packaged(
  folder: string,
  input: Buffer,
  stream: 'audio' | 'video',
  ...options: readonly string[]
): Buffer {
  writeFileSync(path.join(folder, 'to-package.mp4'), input);
  const packager = createRequire(import.meta.url).resolve('shaka-packager');
  const descriptor = `in=to-package.mp4,stream=${stream},output=packaged.mp4`;
  run(folder, process.execPath, packager, descriptor, '--segment_duration', '1', '--quiet', ...options);
  return readFileSync(path.join(folder, 'packaged.mp4'));
}
