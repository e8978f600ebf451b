import type { PackageTrack, TrackRole } from '#contract/package-request.ts';
import type { LeftOut, Route } from '../packaging-plan.ts';
import type { ProbedFile, ProbedStream } from '../probed-file.ts';
import { canonicalTag, hintsOfName, knownLanguage, UNKNOWN_LANGUAGE } from './languages.ts';
import { NOT_PACKAGED, routeOf } from './stream-routes.ts';

/** Stream that becomes a rendition, before it has a name. */
export interface ChosenStream {
  readonly file: ProbedFile;
  readonly stream: ProbedStream;
  readonly route: Route;
  readonly language: string;
  readonly role: TrackRole | null;
  readonly isForced: boolean;
  /** Request for this stream, where there is one. */
  readonly track: PackageTrack | null;
}

interface Choice {
  readonly chosen: readonly ChosenStream[];
  readonly leftOut: readonly LeftOut[];
}

/** Chooses the streams that are packaged. The tallest video comes first, with the other streams of its file. */
export function chooseStreams(files: readonly ProbedFile[], tracks: readonly PackageTrack[]): Choice {
  const chosen: ChosenStream[] = [];
  const leftOut: LeftOut[] = [];
  const isAlone = files.length === 1;
  const there = new Set<string>();
  for (const file of [...files].sort(byHeight)) {
    for (const [index, stream] of file.streams.entries()) {
      const leaveOut = (reason: string) => leftOut.push({ file: file.path, what: nounOf(file, stream), reason });
      const candidate = { file, stream, ...describe(file, stream, trackOf(tracks, file.path, index)) };
      const route = routeOf(file, stream, isAlone);
      if ('reason' in route) leaveOut(route.reason);
      else if (isSecondVideo(file, stream))
        leaveOut('a file gives one rendition of its video; put the other into a file of its own');
      else if (isThereAlready(candidate, there))
        leaveOut('a larger rendition has the same; name it in params.tracks to keep both');
      else chosen.push({ ...candidate, route });
    }
    for (const what of file.others) leftOut.push({ file: file.path, what, reason: NOT_PACKAGED });
  }
  return { chosen: chosen.sort((first, second) => ranked(first) - ranked(second)), leftOut };
}

const RANKS = { video: 0, audio: 1, text: 2, picture: 3 } as const;

function ranked({ stream }: ChosenStream): number {
  return RANKS[stream.kind];
}

function byHeight(first: ProbedFile, second: ProbedFile): number {
  return heightOf(second) - heightOf(first);
}

function heightOf({ streams }: ProbedFile): number {
  const video = streams.find(({ kind }) => kind === 'video');
  return video === undefined ? -1 : Math.min(video.width ?? 0, video.height ?? 0);
}

function trackOf(tracks: readonly PackageTrack[], path: string, index: number): PackageTrack | null {
  const ofFile = tracks.filter(({ file }) => file === path);
  return ofFile.find(({ stream }) => stream === index) ?? ofFile.find(({ stream }) => stream === undefined) ?? null;
}

type Description = Pick<ChosenStream, 'language' | 'role' | 'isForced' | 'track'>;

/** Describes a stream by the request, else by the container, else by the file's name. */
function describe(file: ProbedFile, stream: ProbedStream, track: PackageTrack | null): Description {
  const hints = hasVideo(file) ? { language: null, mark: null } : hintsOfName(file.path);
  const isForced = stream.isForced || hints.mark === 'forced';
  const language = canonicalTag(track?.language ?? '') ?? knownLanguage(stream.language) ?? hints.language;
  const isCaption = stream.kind === 'text' && (hints.mark === 'caption' || stream.isForHearingImpaired);
  const role = track?.role ?? (isCaption ? 'caption' : roleOf(stream));
  return { language: language ?? UNKNOWN_LANGUAGE, role, isForced: stream.kind === 'text' && isForced, track };
}

function roleOf({ isCommentary, isForVisuallyImpaired }: ProbedStream): TrackRole | null {
  if (isCommentary) return 'commentary';
  return isForVisuallyImpaired ? 'description' : null;
}

function hasVideo({ streams }: ProbedFile): boolean {
  return streams.some(({ kind }) => kind === 'video');
}

function isSecondVideo({ streams }: ProbedFile, stream: ProbedStream): boolean {
  return stream.kind === 'video' && stream !== streams.find(({ kind }) => kind === 'video');
}

/**
 * Returns whether a larger rendition brought the same stream: renditions of a film mostly repeat its audio and subtitles.
 * Files without video are there on purpose.
 */
function isThereAlready(candidate: Omit<ChosenStream, 'route'>, there: Set<string>): boolean {
  const { file, stream, language, role, isForced, track } = candidate;
  if (stream.kind === 'video' || !hasVideo(file) || track !== null) return false;
  // Two tracks of one file differ in something, or they would not be there.
  const key = [stream.kind, stream.codec, language, role, isForced, stream.channels, stream.indexOfKind].join('\0');
  if (there.has(key)) return true;
  there.add(key);
  return false;
}

const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth'];

const NOUNS = { video: 'video track', audio: 'audio track', text: 'subtitle track', picture: 'cover picture' } as const;

/** Returns the noun of a stream: `the second audio track`. */
function nounOf({ streams }: ProbedFile, stream: ProbedStream): string {
  const noun = NOUNS[stream.kind];
  const siblings = streams.filter(({ kind }) => kind === stream.kind);
  const index = siblings.indexOf(stream);
  return siblings.length === 1 ? `the ${noun}` : `the ${ORDINALS[index] ?? `${index + 1}th`} ${noun}`;
}
