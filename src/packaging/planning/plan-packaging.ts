import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import type { Warning } from '#errors/warning.ts';
import type { ProbedFile, UnusableFile } from '../probing/probed-file.ts';
import { type AlignedStream, alignTimes } from './align-times.ts';
import { chooseStreams } from './choose-streams.ts';
import { canonicalTag } from './languages.ts';
import { nameRenditions } from './name-renditions.ts';
import type { LeftOut, PackagingPlan, PlannedStream, PublicationShape } from './packaging-plan.ts';
import { assumedTimes, mediaEnd, planWarnings, timesOf } from './plan-warnings.ts';

/** What probing a folder found. */
export interface ProbedFolder {
  /** The folder's name, for messages. */
  readonly name: string;
  readonly files: readonly ProbedFile[];
  readonly unusable: readonly UnusableFile[];
  /** Files that are known to have one time, by path. */
  readonly oneTime: ReadonlySet<string>;
}

/** The packager takes so many streams at once; each costs it threads and memory. */
const MAX_STREAMS = 100;

/** So many problems are told in one error; a folder may have thousands of files. */
const MAX_PROBLEMS = 10;

/**
 * Decides what becomes of a folder: for every stream the rendition it becomes and how it reaches the packager, or why it
 * is left out. Throws an AppError where nothing can be made of it, or less than the folder promises: a broken file, a
 * track that the request names and nobody finds, ffmpeg missing where it is needed.
 */
export function planPackaging(folder: ProbedFolder, params: PackageParams, hasFfmpeg: boolean): PackagingPlan {
  refuseBroken(folder);
  refuseUnknownTracks(folder.files, params);
  const choice = chooseStreams(folder.files, params.tracks ?? []);
  const { chosen, late } = withoutLateSubtitles(alignTimes(choice.chosen, folder.oneTime));
  const leftOut = [...choice.leftOut, ...late];
  if (!chosen.some(({ stream }) => stream.kind !== 'text')) throw nothingToPackage(folder, leftOut);
  if (chosen.length > MAX_STREAMS) {
    throw new AppError('PACKAGING_TOO_LARGE', { folder: folder.name, count: chosen.length, limit: MAX_STREAMS });
  }
  const shape = shapeOf(params);
  const streams = nameRenditions(chosen, shape.defaultLanguage);
  if (!hasFfmpeg) refuseFeeds(streams);
  return {
    ...shape,
    defaultLanguage: shape.defaultLanguage ?? firstLanguage(streams),
    streams,
    leftOut,
    warnings: [
      ...warningsOfSources(folder.files, streams),
      ...planWarnings(streams, leftOut, folder.unusable),
      ...assumedTimes(chosen),
    ],
  };
}

/** Returns what is doubtful about files of which something is packaged. */
function warningsOfSources(files: readonly ProbedFile[], streams: readonly PlannedStream[]): Warning[] {
  const used = new Set(streams.map(({ file }) => file));
  return files.filter(({ path }) => used.has(path)).flatMap(({ warnings }) => warnings);
}

/** The packager refuses subtitles that the film has no place for. */
function withoutLateSubtitles(chosen: readonly AlignedStream[]): { chosen: AlignedStream[]; late: LeftOut[] } {
  const endSeconds = mediaEnd(chosen.map(timesOf)) ?? Number.POSITIVE_INFINITY;
  const isLate = ({ stream, shiftSeconds }: AlignedStream): boolean =>
    stream.kind === 'text' && stream.startSeconds + shiftSeconds >= endSeconds;
  const late = chosen.filter(isLate).map(({ file }) => ({
    file: file.path,
    what: 'the subtitle track',
    reason: 'it starts when the film is over',
  }));
  return { chosen: chosen.filter((candidate) => !isLate(candidate)), late };
}

function shapeOf(params: PackageParams): PublicationShape {
  return {
    segmentSeconds: params.segment_duration ?? 4,
    formats: [...new Set(params.formats ?? (['hls', 'dash'] as const))],
    hlsName: params.hls_name ?? 'master.m3u8',
    dashName: params.dash_name ?? 'manifest.mpd',
    defaultLanguage: canonicalTag(params.default_language ?? ''),
    iFramePlaylists: params.iframe_playlists ?? false,
  };
}

/** Without a default players choose by chance; the first stream is what the folder's maker put first. */
function firstLanguage(streams: readonly PlannedStream[]): string | null {
  return streams.find(({ kind }) => kind === 'audio')?.language ?? null;
}

function refuseBroken({ name, unusable }: ProbedFolder): void {
  const broken = unusable.filter(({ kind }) => kind === 'broken');
  if (broken.length === 0) return;
  throw new AppError('PACKAGING_FILES_BROKEN', {
    folder: name,
    problems: broken.slice(0, MAX_PROBLEMS).map(({ path, problem }) => ({ file: path, problem })),
    count: broken.length,
  });
}

function refuseUnknownTracks(files: readonly ProbedFile[], { tracks = [] }: PackageParams): void {
  for (const [index, { file, stream }] of tracks.entries()) {
    const found = files.find(({ path }) => path === file);
    if (found !== undefined && (stream === undefined || stream < found.streams.length)) continue;
    throw new AppError(
      'PACKAGING_TRACK_UNKNOWN',
      { file, stream: stream ?? null, streamCount: found?.streams.length ?? null },
      { field: `params.tracks[${index}]` },
    );
  }
}

function nothingToPackage({ name, unusable, files }: ProbedFolder, leftOut: readonly LeftOut[]): AppError {
  const problems = [
    ...leftOut.map(({ file, what, reason }) => ({ file, problem: `${what}: ${reason}` })),
    ...unusable.map(({ path, problem }) => ({ file: path, problem })),
    ...files.filter(isTextAlone).map(({ path }) => ({ file: path, problem: 'holds subtitles alone' })),
  ];
  return new AppError('PACKAGING_NO_MEDIA', {
    folder: name,
    fileCount: files.length + unusable.length,
    problems: problems.slice(0, MAX_PROBLEMS),
  });
}

function isTextAlone({ streams }: ProbedFile): boolean {
  return streams.length > 0 && streams.every(({ kind }) => kind === 'text');
}

function refuseFeeds(streams: readonly PlannedStream[]): void {
  const files = new Set(streams.filter(needsFfmpeg).map(({ file }) => file));
  if (files.size > 0) throw new AppError('PACKAGING_FFMPEG_MISSING', { files: [...files].slice(0, MAX_PROBLEMS) });
}

/** Whether a stream goes through ffmpeg: what the packager does not take, and subtitles that lie among pictures. */
export function needsFfmpeg({ route }: PlannedStream): boolean {
  return route.kind === 'feed' || (route.kind === 'text' && route.reader === 'ffmpeg');
}
