import type { SourceFolder } from '#bytes/source-folder.ts';
import { isHidden, sentInPlaceOf } from '../playlists/file-names.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { attributeOf, type HlsLine } from '../playlists/hls-lines.ts';
import { componentsOf, hasType, statedKinds } from '../playlists/mpd-kinds.ts';
import type { HlsPlaylist, MpdDocument, MpdRepresentation, PlaylistDocument } from '../playlists/playlist-document.ts';
import { ambiguous, type PlaylistFinding } from '../playlists/playlist-finding.ts';
import { isOpen } from '../playlists/read-playlists.ts';
import { gapsOf } from '../playlists/rendition-listings.ts';
import type { XmlElement } from '../playlists/xml-element.ts';
import { isPresented } from '../presentation/presentation.ts';

/** A finding about a playlist. */
export interface FoundInPlaylist extends Omit<PlaylistFinding, 'kind'> {
  /** `missing`: an entry does not offer what is signed. */
  readonly kind: PlaylistFinding['kind'] | 'missing';
  /** Of a finding about media: seconds since the start of the programme. */
  readonly startSeconds?: number;
}

/** Returns the last finding of each line. */
export function onceByLine(findings: readonly FoundInPlaylist[]): FoundInPlaylist[] {
  return [...new Map(findings.map((each) => [`${each.playlist}\n${each.line}`, each])).values()];
}

/** A playlist, and how others name it. */
interface NamedPlaylist {
  readonly document: PlaylistDocument;
  /** True where a player takes it for a playlist of media: it is named as one, or is an entry. */
  readonly isPlayedAsMedia: boolean;
}

/** Finds what players may read differently in playlists that are verified, or what has them play less than they list. */
export function findingsIn(playlists: readonly NamedPlaylist[]): FoundInPlaylist[] {
  return playlists.flatMap(({ document, isPlayedAsMedia }) => {
    const found = (is: boolean, problem: string) => (is ? [ambiguous(document.path, problem)] : []);
    const isOfKeyFrames = document.kind === 'hls-media' && document.iFramesOnly;
    const ofMpd =
      document.kind === 'mpd'
        ? [
            ...findPeriodsApart(document),
            ...findUntyped(document),
            ...MISREAD.flatMap(([is, problem]) => found(document.representations.some(is), problem)),
          ]
        : [];
    return [
      ...document.findings,
      ...(document.kind === 'mpd'
        ? found(
            hasShiftBuffer(document.root),
            'it has a buffer for time shift, by which some players begin near its end',
          )
        : findLateStarts(document)),
      ...found(isOpen(document), 'it may grow, so players begin near its end'),
      ...ofMpd,
      ...found(
        isPlayedAsMedia && isOfKeyFrames,
        'some players play it as media, although it says that it is of key frames only',
      ),
    ];
  });
}

/** Representations that some players leave out, wait for or cut, each with what they do. */
const MISREAD: readonly (readonly [is: (representation: MpdRepresentation) => boolean, problem: string])[] = [
  [passesPeriod, 'segments begin behind the end of their period, and some players leave them out'],
  [isOfOtherType, 'a representation says that it is of another type than its media, and some players leave it out'],
  [isEmpty, 'a representation has no segments, and some players wait for them'],
  [passesTimeline, 'a timeline is shorter than the list of its segments, and some players leave the rest out'],
];

/** Seconds that EXT-X-START may have players leave out. */
const MAX_START_SECONDS = 0.1;

function findLateStarts({ path, lines }: HlsPlaylist): FoundInPlaylist[] {
  const isLate = (line: HlsLine): boolean =>
    line.name === 'EXT-X-START' && Math.abs(Number(attributeOf(line, 'TIME-OFFSET') ?? 0)) > MAX_START_SECONDS;
  return lines.filter(isLate).map(({ line }) => ambiguous(path, '#EXT-X-START has some players begin elsewhere', line));
}

/** Returns true for an element that bounds how far players may go back, or that holds one. */
function hasShiftBuffer({ attributes, children }: XmlElement): boolean {
  return attributes.has('timeShiftBufferDepth') || children.some(hasShiftBuffer);
}

/** Seconds between the end of a period and the next one. */
const MAX_APART_SECONDS = 0.1;

/** Finds periods of an MPD whose end is said in two ways, or in none: players take different ones. */
function findPeriodsApart({ path, periods }: MpdDocument): FoundInPlaylist[] {
  return periods.flatMap((period, index) => {
    const { line, startSeconds = 0, durationSeconds, roundingSeconds, followedAtSeconds } = period;
    const isLast = index === periods.length - 1;
    if (durationSeconds === undefined)
      return isLast ? [] : [ambiguous(path, 'nothing says when the period ends', line)];
    const behind = followedAtSeconds === undefined ? 0 : startSeconds + durationSeconds - followedAtSeconds;
    if (Math.abs(behind) <= MAX_APART_SECONDS + roundingSeconds) return [];
    const next = isLast ? 'the presentation does' : 'the next one begins';
    const apart = Math.round(Math.abs(behind) * 1000) / 1000;
    return [ambiguous(path, `the period ends ${apart} s ${behind > 0 ? 'after' : 'before'} ${next}`, line)];
  });
}

function findUntyped({ path, representations }: MpdDocument): FoundInPlaylist[] {
  return representations.flatMap(({ lineage, line }) => {
    const kinds = [...statedKinds(lineage)].filter((kind) => kind !== 'application');
    const isOfOne = kinds.length < 2 && componentsOf(lineage).length < 2;
    const problem = hasType(lineage)
      ? `a representation is said to be of ${kinds.length < 2 ? 'several components' : kinds.join(' and ')}, and some players leave it out`
      : 'a representation has no mimeType, and some players leave it out';
    return hasType(lineage) && isOfOne ? [] : [ambiguous(path, problem, line)];
  });
}

/** Seconds by which writers round the length of a period. */
const ROUNDING_SECONDS = 0.001;

/**
 * Returns true where more than one segment begins with the end of its period, or behind it. One may: lengths are rounded, and
 * sound is some samples longer than pictures.
 */
function passesPeriod({ segments, periodSeconds }: MpdRepresentation): boolean {
  if (periodSeconds === undefined) return false;
  const known = segments.slice(0, -2).map(({ durationSeconds }) => durationSeconds ?? 0);
  const start = known.reduce((sum, seconds) => sum + seconds, 0);
  return segments.length > 1 && start + ROUNDING_SECONDS >= periodSeconds;
}

function isOfOtherType({ init, lineage }: MpdRepresentation): boolean {
  const types = lineage.flatMap(({ attributes }) => attributes.get('mimeType') ?? []);
  return init !== null && types.some((type) => !/^(?:video|audio|text|application)\/mp4$/.test(type));
}

function isEmpty({ addressing, init, segments }: MpdRepresentation): boolean {
  return addressing !== 'none' && init !== null && segments.length === 0;
}

/** Returns true where a list names more segments than its timeline has. */
function passesTimeline({ addressing, segments }: MpdRepresentation): boolean {
  const timed = segments.filter(({ durationSeconds }) => durationSeconds !== null);
  return addressing === 'list' && timed.length > 0 && timed.length < segments.length;
}

/** Finds gaps whose media are there: some players know no gaps, and play them. */
export function findPlayedGaps(playlists: readonly PlaylistDocument[]): FoundInPlaylist[] {
  return playlists.flatMap((document) => {
    const [first] = gapsOf(document);
    if (first === undefined) return [];
    return [ambiguous(document.path, `media of a gap are there ("${first}"), and some players play them`)];
  });
}

/** Finds playlists that servers redirected, so that players look for what these name in another folder than that which was verified. */
export function findRedirected(
  folder: Pick<SourceFolder, 'isElsewhere'>,
  playlists: readonly PlaylistDocument[],
): FoundInPlaylist[] {
  const redirected = playlists.filter(({ path }) => folder.isElsewhere?.(path) === true);
  const problem = 'the server redirects it to another folder, where players look for what it names';
  return redirected.map(({ path }) => ({ ...ambiguous(path, problem), isOfFolder: true }));
}

/** Finds files that a variable names to players that know none. */
export function findNamesOfVariables({ files }: Pick<SourceFolder, 'files'>): FoundInPlaylist[] {
  const named = files.filter(({ path }) => path.includes('{$'));
  const problem = 'its name is that of a variable, which some players do not replace';
  return named.map(({ path }) => ({ ...ambiguous(path, problem), isOfFolder: true }));
}

/** Finds files that are named like playlists, and are none. */
export function findMisleadingNames(
  { files }: Pick<SourceFolder, 'files'>,
  playlists: readonly PlaylistDocument[],
): FoundInPlaylist[] {
  const read = new Set(playlists.map(({ path }) => path));
  const named = files.filter(({ path }) => isPresented(path) && !isHidden(path) && !read.has(path));
  const problem = 'it is named like a playlist, and is none that plays media';
  return named.map(({ path }) => ambiguous(path, problem));
}

/**
 * Finds files that servers may send in place of a playlist, of another file of the folder, or of one that was named and is not there. Which bytes
 * browsers make of them depends on their decoder, so that it does not help if they hold the same.
 */
export function findCompressedFiles(index: FolderIndex): FoundInPlaylist[] {
  return [...index.paths].flatMap((path): FoundInPlaylist[] => {
    const plain = sentInPlaceOf(path);
    if (plain === null || !(index.isServed(plain) || isPresented(plain))) return [];
    return [{ ...ambiguous(path, `some servers send it in place of "${plain}"`), isOfFolder: true }];
  });
}
