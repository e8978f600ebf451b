import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { type FrameWalk, walkFrames } from './frame-walk.ts';
import { leadingTagBytes, readMp3Start } from './mp3-start.ts';
import type { ContainerKind, ProbedStream } from './probed-file.ts';

/** What a movie says of its length and what its fragments hold may differ so much, in seconds and as a part of it. */
const LENGTH_TOLERANCE_SECONDS = 0.5;
const LENGTH_TOLERANCE = 0.01;

/** The frames of an elementary stream; null of anything else, and of one that says how many it has. */
export async function walkElementary(
  container: ContainerKind,
  source: ByteSource,
  signal: AbortSignal,
): Promise<FrameWalk | null> {
  if (container === 'adts') return await walkFrames(source, 'adts', await leadingTagBytes(source, signal), signal);
  if (container !== 'mp3') return null;
  const start = await readMp3Start(source, signal);
  if (start?.hasFrameCount === true) return null;
  return await walkFrames(source, 'mp3', start?.offset ?? 0, signal);
}

/** Where a track ends, in seconds; null where nothing but packaging it tells. */
export async function endOf(
  track: Mediabunny.InputTrack,
  container: ContainerKind,
  walked: FrameWalk | null,
): Promise<number | null> {
  if (walked !== null) return walked.seconds;
  return container === 'mp3' || container === 'flac'
    ? await track.getDurationFromMetadata()
    : await track.computeDuration();
}

/** Warns where the end of a file may be missing, although nothing keeps it from being packaged. */
export async function warningsOfEnd(
  file: string,
  container: ContainerKind,
  streams: readonly ProbedStream[],
  { statedSeconds, walked }: { statedSeconds: number | null; walked: FrameWalk | null },
  source: ByteSource,
  signal: AbortSignal,
): Promise<Warning[]> {
  if (walked !== null && walked.missingBytes > 0) {
    return [warning('FRAME_CUT_SHORT', { file, missingBytes: walked.missingBytes })];
  }
  if (container === 'mpeg-ts' && (await endsWithinPacket(source, signal))) {
    return [warning('PACKET_CUT_SHORT', { file })];
  }
  const ends = streams.map(({ startSeconds, durationSeconds }) => Math.max(startSeconds, 0) + (durationSeconds ?? 0));
  const seconds = Math.max(0, ...ends);
  // Nobody looked at how long subtitles alone are.
  if (statedSeconds === null || streams.length === 0) return [];
  if (statedSeconds - seconds <= Math.max(LENGTH_TOLERANCE_SECONDS, statedSeconds * LENGTH_TOLERANCE)) return [];
  return [warning('FRAGMENTS_END_EARLY', { file, statedSeconds, seconds })];
}

/** Packets have 188 bytes, and four more where a recorder puts its time before them. */
async function endsWithinPacket(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  const [first] = await readRange(source, 0, Math.min(source.sizeBytes, 1), signal);
  return source.sizeBytes % (first === 0x47 ? 188 : 192) !== 0;
}
