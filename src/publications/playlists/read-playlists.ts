import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import type { FolderIndex } from './folder-index.ts';
import { parseHlsPlaylist, referencesOf } from './hls-playlist.ts';
import {
  MAX_LISTED_FRAGMENTS,
  MAX_PLAYLIST_LINE_LENGTH,
  MAX_PLAYLIST_LINES,
  MAX_PLAYLISTS,
  MAX_REPRESENTATIONS,
  refuseBeyond,
  refuseLarger,
} from './limits.ts';
import { checkMpdGrammar } from './mpd-grammar.ts';
import { addressByIndex, addressByList } from './mpd-segment-list.ts';
import { addressByTemplate } from './mpd-segment-template.ts';
import { type AddressedSegments, type AddressingTask, innermostChild } from './mpd-timeline.ts';
import { enterBaseUrl, MpdValues } from './mpd-values.ts';
import type { MpdDocument, MpdPeriod, MpdRepresentation, PlaylistDocument } from './playlist-document.ts';
import { childOf, childrenOf, findElement, LineIndex, parseXml, type XmlElement } from './xml-element.ts';

/**
 * Reads the playlists at `entryPaths` and every media playlist that they name. Each is read once, so playlists that
 * name one another in a circle end. `known` keeps what was read, and what went wrong, for further calls. Throws
 * `PUBLICATION_TOO_LARGE`, and `PLAYLIST_…` for one that cannot be read.
 */
export async function readPlaylists(
  folder: PublicationFolder,
  index: FolderIndex,
  entryPaths: Iterable<string>,
  signal: AbortSignal,
  known = new Map<string, Promise<PlaylistDocument>>(),
): Promise<PlaylistDocument[]> {
  const read = async (path: string): Promise<PlaylistDocument> =>
    await parsePlaylist(folder, index, path, await readPlaylistText(folder, path, signal), signal);
  const found = new Set(entryPaths);
  const documents: PlaylistDocument[] = [];
  // A set is walked in the order of insertion, and what is added on the way is walked too.
  for (const path of found) {
    refuseBeyond('playlists', found.size, MAX_PLAYLISTS);
    signal.throwIfAborted();
    const reading = known.get(path) ?? read(path);
    known.set(path, reading);
    const document = await reading;
    documents.push(document);
    for (const { path: named } of referencesOf(document)) {
      // If missing files are kept, what a missing playlist names is not known.
      if (index.has(named) || index.isUnlisted) found.add(named);
    }
  }
  return documents;
}

/**
 * Parses the text of a playlist or MPD; of the files that an MPD names as a whole, their segment index is read. Throws
 * `PLAYLIST_…` where it cannot be read.
 */
export async function parsePlaylist(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<PlaylistDocument> {
  index.noteEntry(path);
  if (isXml(text)) return await readMpd(folder, index, path, text, signal);
  if (isPlaylist(text)) return parseHlsPlaylist(path, text, index);
  const problem = 'it is neither HLS (#EXTM3U) nor an MPD';
  throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line: 1, problem });
}

/**
 * Refuses playlists whose segments cannot be signed as they are: those encrypted as a whole, and those named in parts.
 * Throws `PLAYLIST_UNSUPPORTED`.
 */
export function refuseUnsignable(playlists: readonly PlaylistDocument[]): void {
  for (const playlist of playlists) {
    const encryption = wholeEncryptionIn(playlist);
    if (encryption === null) continue;
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: playlist.path,
      line: encryption.line,
      feature: `A segment that is encrypted as a whole (${encryption.method})`,
      remedy: 'Use sample encryption (SAMPLE-AES, SAMPLE-AES-CTR, CENC), or sign before encrypting.',
    });
  }
  refusePartialSegments(playlists);
}

/**
 * Refuses low-latency playlists: some players play the partial segments that they name, and others the whole ones.
 * Throws `PLAYLIST_UNSUPPORTED`.
 */
export function refusePartialSegments(playlists: readonly PlaylistDocument[]): void {
  for (const playlist of playlists) {
    const line = partialSegmentIn(playlist);
    if (line === null) continue;
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: playlist.path,
      line,
      feature: 'A low-latency playlist of partial segments',
      remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
    });
  }
}

/** Returns how segments are encrypted as a whole, in HLS or in DASH (ISO/IEC 23009-4), and the line that says it; else null. */
export function wholeEncryptionIn(playlist: PlaylistDocument): { line: number; method: string } | null {
  if (playlist.kind === 'hls-multivariant') return null;
  if (playlist.kind === 'mpd') {
    const element = findElement(playlist.root, 'SegmentEncryption');
    return element === undefined ? null : { line: playlist.lineIndex.lineAt(element.start), method: element.name };
  }
  for (const { name, text, line } of playlist.lines) {
    const [method] = (name === 'EXT-X-KEY' && /METHOD=AES-[\w-]+/.exec(text)) || [];
    if (method !== undefined) return { line, method };
  }
  return null;
}

/** Returns the first line of a low-latency playlist that names a partial segment; null in others. */
export function partialSegmentIn(playlist: PlaylistDocument): number | null {
  if (playlist.kind !== 'hls-media') return null;
  return playlist.lines.find(({ name }) => name === 'EXT-X-PART' || name === 'EXT-X-PRELOAD-HINT')?.line ?? null;
}

/** Returns true for a playlist that is not complete (RFC 8216bis §4.4.3.4, ISO/IEC 23009-1 §5.3.1.2). */
export function isOpen(playlist: PlaylistDocument): boolean {
  if (playlist.kind === 'mpd') return playlist.root.attributes.get('type') === 'dynamic';
  return playlist.kind === 'hls-media' && !playlist.lines.some(({ name }) => name === 'EXT-X-ENDLIST');
}

/** Reads a playlist or MPD as text, UTF-8 as both specifications ask, within the bounds on bytes and lines. */
export async function readPlaylistText(
  folder: Pick<PublicationFolder, 'readPlaylist'>,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  return checkedText(path, await folder.readPlaylist(path, signal));
}

function checkedText(path: string, bytes: Uint8Array): string {
  const text = decode(path, bytes);
  let lineCount = 1;
  let longest = 0;
  let lineStart = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', lineStart)) {
    lineCount += 1;
    longest = Math.max(longest, end - lineStart);
    lineStart = end + 1;
  }
  refuseLarger(path, 'lines', lineCount, MAX_PLAYLIST_LINES);
  if (!isXml(text))
    refuseLarger(path, 'characters in one line', Math.max(longest, text.length - lineStart), MAX_PLAYLIST_LINE_LENGTH);
  return text;
}

function decode(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line: 1, problem: 'it is not UTF-8 text' }, { cause });
  }
}

/** Returns true for the text of a playlist or MPD, by how it begins. */
export function isPlaylist(text: string): boolean {
  return isXml(text) || /^\uFEFF?#EXTM3U/.test(text);
}

/** Returns true when the text is XML, so an MPD rather than an HLS playlist. */
export function isXml(text: string): boolean {
  return /^\uFEFF?\s*</.test(text);
}

/**
 * Reads an MPD and writes out the segments of every representation of every period. Elements that would have to be
 * fetched from elsewhere (xlink) are refused, so an MPD can neither include itself nor another.
 */
async function readMpd(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<MpdDocument> {
  const root = parseXml(path, text);
  const lineIndex = new LineIndex(text);
  const values = new MpdValues(path, lineIndex);
  if (root.name !== 'MPD') throw values.malformed(root, `its root element is ${root.name}, not MPD`);
  refuseRemoteElements(root, values);

  const mpdBase = enterBaseUrl(index.baseOf(path), root, index, values);
  const representations: MpdRepresentation[] = [];
  let segmentCount = 0;
  const periods = timedPeriods(root, values);
  const takenForAll = periodsTakenForAll(periods, values);
  const totalSeconds = values.duration(root, 'mediaPresentationDuration') ?? 0;
  for (const each of periods) {
    const { element: period, durationSeconds } = each;
    const countedSeconds = takenForAll.has(each) ? Math.max(totalSeconds, durationSeconds ?? 0) : 0;
    const periodBase = enterBaseUrl(mpdBase, period, index, values);
    for (const set of childrenOf(period, 'AdaptationSet')) {
      const setBase = enterBaseUrl(periodBase, set, index, values);
      for (const representation of childrenOf(set, 'Representation')) {
        signal.throwIfAborted();
        const lineage = [root, period, set, representation] as const;
        const scheme = schemeOf(lineage);
        const elements = scheme === undefined ? [] : lineage.flatMap((element) => childOf(element, scheme) ?? []);
        const base = enterBaseUrl(setBase, representation, index, values);
        const position = values.positionOf(representation);
        const times = { periodSeconds: durationSeconds, countedSeconds };
        const task = { lineage, elements, values, position, folder, index, base, ...times };
        const addressed = await addressSegments(task, scheme, signal);
        representations.push({ outerBase: setBase, ...describeRepresentation(task, addressed, each) });
        segmentCount += addressed.segments.length;
        refuseBeyond('representations in one MPD', representations.length, MAX_REPRESENTATIONS);
        refuseBeyond('fragments named in playlists', segmentCount, MAX_LISTED_FRAGMENTS);
      }
    }
  }
  const findings = checkMpdGrammar({ path, text, root, lineIndex });
  return { kind: 'mpd', path, text, index, findings, lineIndex, root, periods, representations };
}

function describeRepresentation(
  { lineage, elements, values, position, periodSeconds }: AddressingTask,
  addressed: AddressedSegments,
  { roundingSeconds }: MpdPeriod,
): Omit<MpdRepresentation, 'outerBase'> {
  const timescale = Number(values.inherited(elements, 'timescale') ?? 1n);
  const startSeconds = Number(values.inherited(elements, 'presentationTimeOffset') ?? 0n) / timescale;
  const endSeconds = periodSeconds === undefined ? null : startSeconds + periodSeconds + roundingSeconds;
  const window = { startSeconds, endSeconds };
  const isTimed = addressed.addressing === 'base' || innermostChild(elements, 'SegmentTimeline') !== undefined;
  return { ...position, lineage, periodSeconds, window, isTimed, ...addressed };
}

function timedPeriods(root: XmlElement, values: MpdValues): MpdPeriod[] {
  const periods = childrenOf(root, 'Period');
  const total = values.duration(root, 'mediaPresentationDuration');
  let clock: number | undefined = 0;
  return periods.map((element, index) => {
    const start: number | undefined = values.duration(element, 'start') ?? clock;
    const next = periods[index + 1];
    const followedAtSeconds = next === undefined ? total : values.duration(next, 'start');
    const length = followedAtSeconds === undefined || start === undefined ? undefined : followedAtSeconds - start;
    const durationSeconds = values.duration(element, 'duration') ?? (length && Math.max(length, 0));
    clock = start === undefined || durationSeconds === undefined ? undefined : start + durationSeconds;
    const { line } = values.positionOf(element);
    const roundingSeconds = element.attributes.has('duration')
      ? values.rounding(element, 'duration')
      : next === undefined
        ? values.rounding(root, 'mediaPresentationDuration')
        : values.rounding(next, 'start');
    return { element, line, startSeconds: start, durationSeconds, roundingSeconds, followedAtSeconds };
  });
}

/** Returns the periods that players take which know one alone: the longest, by what it says itself or by what follows, and of several the last. */
function periodsTakenForAll(periods: readonly MpdPeriod[], values: MpdValues): Set<MpdPeriod> {
  const longestBy = (secondsOf: (period: MpdPeriod) => number | undefined): MpdPeriod[] => {
    const longest = Math.max(...periods.map((each) => secondsOf(each) ?? 0));
    return periods.filter((each) => (secondsOf(each) ?? 0) === longest).slice(-1);
  };
  return new Set([
    ...longestBy(({ element }) => values.duration(element, 'duration')),
    ...longestBy(({ durationSeconds }) => durationSeconds),
  ]);
}

function refuseRemoteElements(element: XmlElement, values: MpdValues): void {
  if (element.attributes.has('href')) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      ...values.positionOf(element),
      feature: 'An MPD with elements that stand elsewhere (xlink:href)',
      remedy: 'Write them into the MPD.',
    });
  }
  // Events carry content of applications, which may have links of its own.
  if (element.name === 'Event') return;
  for (const child of element.children) refuseRemoteElements(child, values);
}

/** Writes out the segments of one representation, by whichever addressing scheme its innermost element uses. */
async function addressSegments(
  task: AddressingTask,
  scheme: Scheme | undefined,
  signal: AbortSignal,
): Promise<AddressedSegments> {
  if (scheme === 'SegmentTemplate') return addressByTemplate(task);
  return scheme === 'SegmentList' ? addressByList(task) : await addressByIndex(task, signal);
}

const SCHEMES = ['SegmentTemplate', 'SegmentList', 'SegmentBase'] as const;
type Scheme = (typeof SCHEMES)[number];

function schemeOf(lineage: readonly XmlElement[]): Scheme | undefined {
  const decisive = lineage.findLast((element) => SCHEMES.some((scheme) => childOf(element, scheme) !== undefined));
  return SCHEMES.find((scheme) => decisive !== undefined && childOf(decisive, scheme) !== undefined);
}
