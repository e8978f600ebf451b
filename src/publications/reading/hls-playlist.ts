import { AppError } from '#errors/app-error.ts';
import type { ByteRange } from '../publication.ts';
import { hlsAttribute } from './hls-attributes.ts';
import { writeOutVariables } from './hls-variables.ts';

/** An HLS playlist (RFC 8216bis) as far as signing needs it. Lines count from one. */
export type HlsPlaylist = HlsMultivariant | HlsMedia;

export interface HlsMultivariant {
  readonly kind: 'hls-multivariant';
  readonly path: string;
  readonly text: string;
  /** Every media playlist it names, by variant, rendition or I-frame stream. */
  readonly references: readonly HlsReference[];
}

export interface HlsReference {
  readonly uri: string;
  readonly line: number;
}

export interface HlsMedia {
  readonly kind: 'hls-media';
  readonly path: string;
  readonly text: string;
  /** Whether its segments are single frames inside other playlists' fragments (EXT-X-I-FRAMES-ONLY). */
  readonly iFramesOnly: boolean;
  /** In playback order; gaps (EXT-X-GAP) are left out. */
  readonly segments: readonly HlsSegment[];
}

export interface HlsSegment extends HlsReference {
  readonly durationSeconds: number;
  readonly range: ByteRange | null;
  readonly map: HlsMap | null;
}

/** An EXT-X-MAP tag; the same object stands at every segment up to the next tag. */
export interface HlsMap extends HlsReference {
  readonly range: ByteRange | null;
}

/** Tags by which a playlist shows what it is; the first of them decides. */
const DECIDING_TAG = /^#(?:EXTINF|EXT-X-(?:TARGETDURATION|MEDIA|SESSION-DATA|SESSION-KEY|[A-Z-]*STREAM-INF)):/;

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF):/;

/** The lines of a playlist as they are meant: without white space around them, and with variables written out. */
export function hlsLines(path: string, text: string): readonly string[] {
  return writeOutVariables(
    path,
    text.split('\n').map((line) => line.trim()),
  );
}

/**
 * Parses an HLS playlist, in one pass over its lines; an AppError that names the line where it is malformed. Lenient, as
 * players are: tags that signing does not need are not checked.
 */
export function parseHlsPlaylist(path: string, text: string): HlsPlaylist {
  const lines = hlsLines(path, text);
  if (isMultivariant(lines)) return { kind: 'hls-multivariant', path, text, references: referencesIn(lines) };
  const iFramesOnly = lines.some((line) => /^#EXT-X-I-FRAMES-ONLY\b/.test(line));
  return { kind: 'hls-media', path, text, iFramesOnly, segments: readSegments(path, lines) };
}

function isMultivariant(lines: readonly string[]): boolean {
  const first = lines.find((line) => DECIDING_TAG.test(line)) ?? '#EXTINF:';
  return !/^#(?:EXTINF|EXT-X-TARGETDURATION):/.test(first);
}

function referencesIn(lines: readonly string[]): HlsReference[] {
  const references: HlsReference[] = [];
  for (const [index, line] of lines.entries()) {
    const uri = isAddress(line) ? line : REFERRING_TAG.test(line) ? hlsAttribute(line, 'URI') : undefined;
    if (uri !== undefined) references.push({ uri, line: index + 1 });
  }
  return references;
}

/** For every line the position of the next address below it; the number of lines where there is none. */
export function addressesBelow(lines: readonly string[]): readonly number[] {
  const below = new Array<number>(lines.length);
  let next = lines.length;
  for (let at = lines.length - 1; at >= 0; at -= 1) {
    below[at] = next;
    if (isAddress(lines[at] as string)) next = at;
  }
  return below;
}

function isAddress(line: string): boolean {
  return line !== '' && !line.startsWith('#');
}

/** What the tags above an address say of it. */
interface SegmentTags {
  durationSeconds: number | null;
  range: string | null;
  isGap: boolean;
}

function readSegments(path: string, lines: readonly string[]): HlsSegment[] {
  const segments: HlsSegment[] = [];
  let map: HlsMap | null = null;
  let tags: SegmentTags = { durationSeconds: null, range: null, isGap: false };
  let before: HlsSegment | undefined;
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    if (text.startsWith('#EXT-X-MAP:')) map = readMap(path, text, line);
    else if (text.startsWith('#')) readTag(text, tags);
    else if (text !== '') {
      const segment = readSegment(path, { uri: text, line, map }, tags, before);
      if (!tags.isGap) segments.push(segment);
      before = segment;
      tags = { durationSeconds: null, range: null, isGap: false };
    }
  }
  return segments;
}

function readTag(text: string, tags: SegmentTags): void {
  if (text.startsWith('#EXTINF:')) tags.durationSeconds = Number.parseFloat(text.slice('#EXTINF:'.length)) || 0;
  else if (text.startsWith('#EXT-X-BYTERANGE:')) tags.range = text.slice('#EXT-X-BYTERANGE:'.length).trim();
  else if (/^#EXT-X-GAP\b/.test(text)) tags.isGap = true;
}

function readSegment(
  path: string,
  address: Pick<HlsSegment, 'uri' | 'line' | 'map'>,
  { durationSeconds, range, isGap }: SegmentTags,
  before: HlsSegment | undefined,
): HlsSegment {
  const place = { playlist: path, line: address.line };
  // A range without a start goes on where that of the segment before ends (RFC 8216bis §4.4.4.2).
  const follows =
    before?.uri === address.uri && before.range !== null ? before.range.offset + before.range.length : null;
  const segment = { ...address, range: readRange(range, follows, place), durationSeconds: durationSeconds ?? 0 };
  if (isGap) return segment;
  if (durationSeconds === null) {
    throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: 'an address without #EXTINF' });
  }
  if (Number.isFinite(durationSeconds) && durationSeconds >= 0) return segment;
  throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: '#EXTINF without a duration' });
}

function readMap(playlist: string, text: string, line: number): HlsMap {
  const place = { playlist, line };
  const uri = hlsAttribute(text, 'URI');
  if (uri === undefined) throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: '#EXT-X-MAP without a URI' });
  return { uri, line, range: readRange(hlsAttribute(text, 'BYTERANGE') ?? null, 0, place) };
}

/** A byte range `length[@offset]`. `follows` is where one starts that does not say it; null where that is an error. */
function readRange(
  value: string | null,
  follows: number | null,
  place: { playlist: string; line: number },
): ByteRange | null {
  if (value === null) return null;
  const [, length, start] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value) ?? [];
  const offset = start === undefined ? follows : Number(start);
  if (Number(length) > 0 && offset !== null) return { offset, length: Number(length) };
  throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: 'a byte range without a length or a start' });
}
