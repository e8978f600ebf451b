import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ALL_FORMATS, EncodedPacketSink, FilePathSource, Input } from 'mediabunny';

/** A generous bound: it is passed only where ffmpeg hangs. */
const DECODE_TIMEOUT_MS = 600_000;
/** Of a long film, the first seconds are decoded; packets and samples are compared to the end. */
const DECODED_SECONDS = 15;

/** Readings of a file by other programs; `null` where one cannot read it. */
export interface MediaReading {
  /** Digest of every decoded frame of the first seconds with its time, by ffmpeg. */
  readonly frames: string | null;
  /** Digest of every packet of every stream with its times, as ffmpeg's demuxer finds it. */
  readonly packets: string | null;
  /** Digest of every sample of every audio and video track with its times, as mediabunny's demuxer finds it. */
  readonly samples: string | null;
  /** True where ffmpeg complained about the file: its tables point outside its media, or the media is damaged. */
  readonly damaged: boolean;
}

/** The readings that are compared. */
const READINGS = ['frames', 'packets', 'samples'] as const;

/** Options of ffmpeg for the frames, and for the packets of all streams. */
const FRAMES = ['-map', '0:v?', '-map', '0:a?', '-fps_mode', 'passthrough', '-t', String(DECODED_SECONDS)];
const PACKETS = ['-map', '0', '-c', 'copy', '-copy_unknown'];

/** Reads a file with ffmpeg and with mediabunny, neither of which knows anything of this project. */
export async function readMedia(path: string): Promise<MediaReading> {
  const [{ digests, damaged }, samples] = await Promise.all([readWithFfmpeg(path), samplesDigest(path)]);
  const [frames = null, packets = null] = digests;
  return { frames, packets, samples, damaged };
}

/** Reads frames and packets by one start of ffmpeg, which takes long; by one each where it cannot read both. */
async function readWithFfmpeg(path: string): Promise<FfmpegReading> {
  const both = await ffmpegDigests(path, [FRAMES, PACKETS]);
  if (!both.damaged && !both.digests.includes(null)) return both;
  const [frames, packets] = await Promise.all([ffmpegDigests(path, [FRAMES]), ffmpegDigests(path, [PACKETS])]);
  return { digests: [...frames.digests, ...packets.digests], damaged: frames.damaged || packets.damaged };
}

/** Returns the readings in which a source and its signed output differ. A reading that failed on the source is left out. */
export function differences(source: MediaReading, output: MediaReading): string[] {
  return READINGS.filter((reading) => source[reading] !== null && source[reading] !== output[reading]);
}

/**
 * Of a line of framemd5: stream, times, duration, size and digest. What follows is side data, such as a replay gain that
 * ffmpeg finds in a tag only when its unsynchronisation has been undone.
 */
const COMPARED_FIELDS = 6;

interface FfmpegReading {
  /** One for each selection; null where ffmpeg finds no frame at all. */
  readonly digests: readonly (string | null)[];
  readonly damaged: boolean;
}

async function ffmpegDigests(path: string, selections: readonly (readonly string[])[]): Promise<FfmpegReading> {
  const outputs = selections.flatMap((selection, index) => [...selection, '-f', 'framemd5', `pipe:${3 + index}`]);
  // One thread: what a decoder conceals of a damaged stream must not depend on timing.
  const child = spawn('ffmpeg', ['-nostdin', '-v', 'error', '-threads', '1', '-i', path, ...outputs], {
    stdio: ['ignore', 'ignore', 'pipe', ...selections.map(() => 'pipe' as const)],
    timeout: DECODE_TIMEOUT_MS,
  });
  let damaged = false;
  child.stderr?.on('data', () => {
    damaged = true;
  });
  const printed = child.stdio.slice(3) as Readable[];
  const [digests] = await Promise.all([Promise.all(printed.map(digestOf)), once(child, 'exit')]);
  if (child.signalCode !== null) throw new Error(`ffmpeg did not read ${path} to its end: ${child.signalCode}`);
  return { digests, damaged };
}

/** Digest of a framemd5, stream by stream: how streams are interleaved varies from run to run. */
async function digestOf(printed: Readable): Promise<string | null> {
  const streams = new Map<string, Hash>();
  for await (const line of createInterface({ input: printed, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.startsWith('#')) continue;
    const stream = line.slice(0, line.indexOf(','));
    const hash = streams.get(stream) ?? createHash('sha256');
    streams.set(stream, hash.update(`${line.split(',', COMPARED_FIELDS).join(',')}\n`));
  }
  const digests = [...streams].map(([stream, hash]) => `${stream} ${hash.digest('hex')}`);
  return digests.length === 0 ? null : digests.sort().join('\n');
}

async function samplesDigest(path: string): Promise<string | null> {
  using input = new Input({ formats: ALL_FORMATS, source: new FilePathSource(path) });
  const hash = createHash('sha256');
  try {
    let samples = 0;
    for (const track of await input.getTracks()) {
      hash.update(`track ${track.id} ${track.type}\n`);
      for await (const packet of new EncodedPacketSink(track).packets()) {
        addPacket(hash, packet);
        samples += 1;
      }
    }
    return samples === 0 ? null : hash.digest('hex');
  } catch {
    // It reads no such file; the other readings have to do.
    return null;
  }
}

function addPacket(
  hash: Hash,
  packet: { readonly timestamp: number; readonly duration: number; readonly type: string; readonly data: Uint8Array },
): void {
  hash.update(`${packet.timestamp} ${packet.duration} ${packet.type} ${packet.data.length}\n`).update(packet.data);
}
