import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AppError } from '#errors/app-error.ts';
import { findProgram } from '#processes/find-program.ts';
import type { PlannedStream } from '../packaging-plan.ts';
import type { ContainerKind } from '../probed-file.ts';
import { describeExit, type Program, type ProgramExit, TERMINATION_SIGNALS } from './run-programs.ts';

/** Streams of one file that ffmpeg remuxes into one container, in their order there. */
interface Feed {
  readonly file: string;
  readonly into: 'mp4' | 'mpegts';
  readonly streams: readonly PlannedStream[];
  /** True where packets that an edit list hides at the start are kept, because the packager fails on such a list. */
  readonly showsPreroll: boolean;
  /** Position of its first packet in the publication, in seconds. */
  readonly startSeconds: number;
}

/** Returns the feeds of a plan: one for each file and container. */
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

/**
 * Makes the named pipe `fifo` in the folder `work` and returns the program that feeds it. Throws
 * `PACKAGING_FFMPEG_MISSING`, or `SCRATCH_UNUSABLE` where the file system has no named pipes.
 */
export async function prepareFeed(feed: Feed, input: string, work: string, fifo: string): Promise<Program> {
  const path = findProgram('ffmpeg');
  const mkfifo = findProgram('mkfifo');
  if (path === null || mkfifo === null) throw new AppError('PACKAGING_FFMPEG_MISSING', { files: [feed.file] });
  await promisify(execFile)(mkfifo, ['-m', '600', join(work, fifo)]).catch((cause: unknown) => {
    throw new AppError('SCRATCH_UNUSABLE', { path: work, problem: 'its file system takes no named pipes' }, { cause });
  });
  return {
    title: 'ffmpeg',
    path,
    args: feedArguments(feed, input, fifo),
    failure: (exit) => feedError(exit, feed.file),
  };
}

/** Names of ffmpeg's demuxers. One is always given, so that ffmpeg never takes a playlist for media. */
const DEMUXERS: Readonly<Record<ContainerKind, string>> = {
  mp4: 'mov',
  quicktime: 'mov',
  matroska: 'matroska',
  webm: 'matroska',
  'mpeg-ts': 'mpegts',
  mp3: 'mp3',
  wave: 'wav',
  ogg: 'ogg',
  adts: 'aac',
  flac: 'flac',
  ac3: 'ac3', // It reads E-AC-3 alike.
  vtt: 'webvtt',
  srt: 'srt',
  ttml: 'ttml', // We read it ourselves.
};

/**
 * Returns the arguments that every run of ffmpeg starts with. They allow local files only, and only the demuxer of the
 * container that was found, so that a playlist that is named like a film opens nothing.
 */
export function inputArguments({ container }: Pick<PlannedStream, 'container'>, input: string): string[] {
  return [
    ...['-nostdin', '-hide_banner', '-v', 'error', '-y'],
    ...['-protocol_whitelist', 'file', '-f', DEMUXERS[container], '-i', `file:${input}`],
  ];
}

/** Returns ffmpeg's arguments for one feed. Packets stay as they are; raw samples become FLAC. */
function feedArguments({ into, streams, showsPreroll, startSeconds }: Feed, input: string, output: string): string[] {
  const [first] = streams as [PlannedStream];
  return [
    ...inputArguments(first, input),
    ...streams.flatMap((stream) => ['-map', `0:${specifierOf(stream)}`]),
    ...streams.flatMap((stream, index) => codecOptions(stream, index)),
    // ffmpeg shifts the first packet of a file to zero.
    ...(startSeconds > 0 ? ['-output_ts_offset', startSeconds.toFixed(6)] : []),
    ...['-map_metadata', '-1', '-map_chapters', '-1'],
    ...(into === 'mp4' ? mp4Options(streams, showsPreroll) : ['-muxdelay', '0', '-muxpreload', '0', '-f', 'mpegts']),
    `file:${output}`,
  ];
}

/** Returns ffmpeg's specifier of a stream. In a transport stream that is the PID: ffmpeg may list streams that we do not. */
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

/** Duration of a fragment that holds audio alone, in microseconds: without one the packager would get the whole file at once. */
const AUDIO_FRAGMENT_US = 1_000_000;

function mp4Options(streams: readonly PlannedStream[], showsPreroll: boolean): string[] {
  const hasVideo = streams.some(({ kind }) => kind === 'video');
  return [
    ...['-strict', '-2'], // FLAC and Opus in MP4 are experimental to older releases of ffmpeg.
    ...(showsPreroll ? ['-avoid_negative_ts', 'make_zero'] : []),
    ...(hasVideo ? [] : ['-frag_duration', String(AUDIO_FRAGMENT_US)]),
    ...['-f', 'mp4', '-movflags', '+frag_keyframe+empty_moov+delay_moov'],
  ];
}

/** Exit code of ffmpeg after a termination signal; also where something is not permitted, but then it says so. */
const TERMINATED_EXIT_CODE = 255;

/** Returns the error for a failed run of ffmpeg: the last line that it wrote, without our names of files. */
export function feedError(exit: ProgramExit, file: string): AppError {
  const isTerminated = exit.code === TERMINATED_EXIT_CODE && !/not permitted/.test(exit.errorText);
  if (TERMINATION_SIGNALS.has(exit.signal) || isTerminated)
    return new AppError('PROGRAM_TOLD_TO_END', { program: 'ffmpeg' });
  const last = exit.errorText.trimEnd().split('\n').at(-1) ?? '';
  const plain = last.replaceAll(/(?:file:)?(?:source|feed)-\d+/g, 'the file').replace(/^\[[^\]]*\] /, '');
  const problem = plain.replace(/[.:\s]+$/, '');
  return new AppError('FEED_FAILED', { file, problem: problem === '' ? describeExit(exit) : problem });
}
