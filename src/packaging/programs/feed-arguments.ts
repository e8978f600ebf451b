import type { PlannedStream } from '../planning/packaging-plan.ts';
import { DEMUXERS } from '../planning/stream-routes.ts';

/** Streams of one file that ffmpeg brings into one container, in the order in which they lie there. */
export interface Feed {
  readonly file: string;
  readonly into: 'mp4' | 'mpegts';
  readonly streams: readonly PlannedStream[];
  /** Whether an edit list hides the first packets of the file: they are shown then, for the packager fails on them. */
  readonly showsPreroll: boolean;
  /** Where its first packet comes to stand, in seconds. */
  readonly startSeconds: number;
}

/** The feeds of a plan: one for each file and container. */
export function feedsOf(streams: readonly PlannedStream[]): Feed[] {
  const fed = streams.filter(({ route }) => route.kind === 'feed');
  const groups = Map.groupBy(fed, (stream) => `${intoOf(stream)}\0${stream.file}`);
  return [...groups.values()].map((group) => {
    const [first] = group as [PlannedStream];
    const showsPreroll = group.some(({ kind, startSeconds }) => kind === 'video' && startSeconds < 0);
    return {
      file: first.file,
      into: intoOf(first),
      streams: group,
      showsPreroll,
      startSeconds: first.fileStartSeconds,
    };
  });
}

function intoOf({ route }: PlannedStream): 'mp4' | 'mpegts' {
  return route.kind === 'feed' ? route.into : 'mp4';
}

/** A fragment of sound alone is as long as this, in microseconds: the packager gets it in pieces. */
const AUDIO_FRAGMENT_US = 1_000_000;

/**
 * What every run of ffmpeg starts with: nothing is read but local files, and a file is taken for nothing but what it was
 * found to be, so that a playlist that calls itself a film opens nothing.
 */
export function readingArguments({ container }: Pick<PlannedStream, 'container'>, input: string): string[] {
  return [
    ...['-nostdin', '-hide_banner', '-v', 'error', '-y'],
    ...['-protocol_whitelist', 'file', '-f', DEMUXERS[container], '-i', `file:${input}`],
  ];
}

/** ffmpeg's arguments for one feed. Packets stay as they are; raw samples become FLAC. */
export function feedArguments(
  { into, streams, showsPreroll, startSeconds }: Feed,
  input: string,
  output: string,
): string[] {
  const [first] = streams as [PlannedStream];
  return [
    ...readingArguments(first, input),
    ...streams.flatMap((stream) => ['-map', `0:${specifierOf(stream)}`]),
    ...streams.flatMap((stream, index) => codecOptions(stream, index)),
    // ffmpeg moves what a file starts with to zero.
    ...(startSeconds > 0 ? ['-output_ts_offset', startSeconds.toFixed(6)] : []),
    ...['-map_metadata', '-1', '-map_chapters', '-1'],
    ...(into === 'mp4' ? mp4Options(streams, showsPreroll) : ['-muxdelay', '0', '-muxpreload', '0', '-f', 'mpegts']),
    `file:${output}`,
  ];
}

/** A stream as ffmpeg counts them; in a transport stream it may list some that we do not, and has PIDs. */
function specifierOf({ container, kind, indexOfKind, id }: PlannedStream): string {
  if (container === 'mpeg-ts') return `i:${id}`;
  return `${kind === 'video' ? 'v' : 'a'}:${indexOfKind}`;
}

function codecOptions({ route, codec, container }: PlannedStream, index: number): string[] {
  if (route.kind === 'feed' && route.packets === 'flac') return [`-c:${index}`, 'flac'];
  const copy = [`-c:${index}`, 'copy'];
  if (codec === 'hevc') return [...copy, `-tag:${index}`, 'hvc1'];
  const isAdts = codec === 'aac' && (container === 'adts' || container === 'mpeg-ts');
  return isAdts ? [...copy, `-bsf:${index}`, 'aac_adtstoasc'] : copy;
}

function mp4Options(streams: readonly PlannedStream[], showsPreroll: boolean): string[] {
  const hasVideo = streams.some(({ kind }) => kind === 'video');
  return [
    ...['-strict', '-2'], // FLAC and Opus in MP4 are experimental to older releases of ffmpeg.
    ...(showsPreroll ? ['-avoid_negative_ts', 'make_zero'] : []),
    ...(hasVideo ? [] : ['-frag_duration', String(AUDIO_FRAGMENT_US)]),
    ...['-f', 'mp4', '-movflags', '+frag_keyframe+empty_moov+delay_moov'],
  ];
}
