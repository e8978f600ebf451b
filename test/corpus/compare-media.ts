import { spawn } from 'node:child_process';
import { createHash, type Hash } from 'node:crypto';
import { createInterface } from 'node:readline';
import { ALL_FORMATS, EncodedPacketSink, FilePathSource, Input } from 'mediabunny';

const DECODE_TIMEOUT_MS = 180_000;
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

/** Reads a file with ffmpeg and with mediabunny, neither of which knows anything of this project. */
export async function readMedia(path: string): Promise<MediaReading> {
  const [frames, packets, samples] = await Promise.all([
    ffmpegDigest(path, ['-map', '0:v?', '-map', '0:a?', '-fps_mode', 'passthrough', '-t', String(DECODED_SECONDS)]),
    ffmpegDigest(path, ['-map', '0', '-c', 'copy', '-copy_unknown']),
    samplesDigest(path),
  ]);
  return { frames: frames.digest, packets: packets.digest, samples, damaged: frames.damaged || packets.damaged };
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
  readonly digest: string | null;
  readonly damaged: boolean;
}

/**
 * Digest of what ffmpeg prints as framemd5, stream by stream: how streams are interleaved varies from run to run. Null
 * where it finds no frame at all.
 */
async function ffmpegDigest(path: string, selection: readonly string[]): Promise<FfmpegReading> {
  // One thread: what a decoder conceals of a damaged stream must not depend on timing.
  const fixed = ['-nostdin', '-v', 'error', '-threads', '1', '-i', path, ...selection, '-f', 'framemd5', '-'];
  const child = spawn('ffmpeg', fixed, { stdio: ['ignore', 'pipe', 'pipe'], timeout: DECODE_TIMEOUT_MS });
  let damaged = false;
  child.stderr.on('data', () => {
    damaged = true;
  });
  const streams = new Map<string, Hash>();
  for await (const line of createInterface({ input: child.stdout, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (line.startsWith('#')) continue;
    const stream = line.slice(0, line.indexOf(','));
    const hash = streams.get(stream) ?? createHash('sha256');
    streams.set(stream, hash.update(`${line.split(',', COMPARED_FIELDS).join(',')}\n`));
  }
  const digests = [...streams].map(([stream, hash]) => `${stream} ${hash.digest('hex')}`);
  return { digest: digests.length === 0 ? null : digests.sort().join('\n'), damaged };
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
