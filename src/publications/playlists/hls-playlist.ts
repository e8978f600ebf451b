import { AppError } from '#errors/app-error.ts';
import type { PlaylistPosition } from '#errors/entry.ts';
import type { ByteRange, MediaPart } from '../media-part.ts';
import type { FolderIndex } from './folder-index.ts';
import { findingsOfLine, LineOrder } from './hls-grammar.ts';
import { attributeOf, type HlsLine, readHlsLine, variablesOf } from './hls-lines.ts';
import type {
  HlsMap,
  HlsMedia,
  HlsPlaylist,
  HlsReference,
  HlsSegment,
  PlaylistDocument,
  PlaylistReference,
} from './playlist-document.ts';
import type { PlaylistFinding } from './playlist-finding.ts';

/** Tags by which a playlist shows what it is; the first of them decides. */
const DECIDING_TAG = /^(?:EXTINF|EXT-X-(?:TARGETDURATION|MEDIA|SESSION-DATA|SESSION-KEY|[A-Z-]*STREAM-INF))$/;

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF)$/;

/**
 * Reads an HLS playlist, each line once: what it lists, as lenient players read it, and what strict ones read differently. Lines
 * end with a line feed (RFC 8216 §4.1). Throws an AppError that names the line where it is malformed.
 */
export function parseHlsPlaylist(path: string, text: string, index: FolderIndex): HlsPlaylist {
  const findings: PlaylistFinding[] = [];
  const order = new LineOrder();
  const writeOut = variablesOf(path);
  const lines: HlsLine[] = [];
  const all = text.split('\n');
  for (const [at, written] of all.entries()) {
    const read = readHlsLine(written.trim(), at + 1);
    for (const found of findingsOfLine(written, read, order)) findings.push({ playlist: path, line: at + 1, ...found });
    const meant = read === null ? null : writeOut(read);
    if (meant !== null) lines.push(meant);
  }
  for (const found of order.atEnd()) findings.push({ playlist: path, line: all.length, ...found });
  const document = { path, text, index, base: index.baseOf(path), lines, findings };
  if (!isMultivariant(lines)) {
    const iFramesOnly = lines.some(({ name }) => name === 'EXT-X-I-FRAMES-ONLY');
    return { kind: 'hls-media', ...document, iFramesOnly, ...readSegments(path, lines) };
  }
  return { kind: 'hls-multivariant', ...document, references: referencesIn(lines) };
}

function isMultivariant(lines: readonly HlsLine[]): boolean {
  const first = lines.find(({ name, value }) => name !== null && value !== null && DECIDING_TAG.test(name));
  return first !== undefined && !/^(?:EXTINF|EXT-X-TARGETDURATION)$/.test(first.name ?? '');
}

function referencesIn(lines: readonly HlsLine[]): PlaylistReference[] {
  const references: PlaylistReference[] = [];
  let variant: HlsLine | null = null;
  for (const each of lines) {
    const { name, text, value, line } = each;
    const isVariant = name === null;
    if (name === 'EXT-X-STREAM-INF' && value !== null) variant = each;
    const uri = isVariant ? text : REFERRING_TAG.test(name) ? attributeOf(each, 'URI') : undefined;
    if (uri === undefined) continue;
    const tag: HlsLine | null = isVariant ? variant : each;
    const type = tag === null ? undefined : attributeOf(tag, 'TYPE');
    references.push({
      uri,
      line,
      tag,
      isVariant,
      isOfKeyFrames: name === 'EXT-X-I-FRAME-STREAM-INF',
      isOfMedia: isVariant || (name === 'EXT-X-MEDIA' && !/^(?:SUBTITLES|CLOSED-CAPTIONS)$/.test(type ?? '')),
    });
    if (isVariant) variant = null;
  }
  return references;
}

/** Attributes of a segment from the tags above its address. */
interface SegmentTags {
  durationSeconds: number | null;
  roundingSeconds: number;
  dateSeconds: number | null;
  range: string | null;
  rangeLine: number | null;
  isGap: boolean;
}

function readSegments(path: string, lines: readonly HlsLine[]): Pick<HlsMedia, 'segments' | 'gaps'> {
  const segments: HlsSegment[] = [];
  const gaps: HlsSegment[] = [];
  let map: HlsMap | null = null;
  let tags = noTags();
  let section = 0;
  let startSeconds = 0;
  let gapSeconds = 0;
  let key: string | null = null;
  let before: HlsSegment | undefined;
  for (const each of lines) {
    const { name, text, value, line } = each;
    if (name === null) {
      const about = { uri: text, line, map, section, startSeconds, gapSeconds, key, position: segments.length };
      before = readSegment(path, about, tags, before);
      (tags.isGap ? gaps : segments).push(before);
      startSeconds += tags.isGap ? 0 : before.durationSeconds;
      gapSeconds = tags.isGap ? gapSeconds + before.durationSeconds : 0;
      tags = noTags();
    } else if (name === 'EXT-X-GAP') tags.isGap = true;
    else if (name === 'EXT-X-DISCONTINUITY') section += value === null ? 1 : 0;
    else if (value === null) continue;
    else if (name === 'EXT-X-KEY') key = attributeOf(each, 'METHOD') === 'NONE' ? null : value;
    else if (name === 'EXT-X-MAP') map = readMap(path, each);
    else if (name === 'EXT-X-DISCONTINUITY-SEQUENCE') section = Number(value);
    else if (name === 'EXT-X-PROGRAM-DATE-TIME') tags.dateSeconds = dateSecondsIn(value);
    else if (name === 'EXT-X-BYTERANGE') Object.assign(tags, { range: value.trim(), rangeLine: line });
    else if (name === 'EXTINF') {
      const [stated = ''] = value.split(',', 1);
      tags.durationSeconds = Number.parseFloat(stated) || 0;
      tags.roundingSeconds = 0.5 / 10 ** (/\.(\d*)/.exec(stated)?.[1] ?? '').length;
    }
  }
  return { segments, gaps };
}

/** Returns a time of day in seconds; without a zone one of UTC: the zone of this host is no part of the verdict. */
function dateSecondsIn(value: string): number {
  return Date.parse(/(?:Z|[+-]\d{2}:?\d{2})$/.test(value) ? value : `${value}Z`) / 1000;
}

function noTags(): SegmentTags {
  return { durationSeconds: null, roundingSeconds: 0, dateSeconds: null, range: null, rangeLine: null, isGap: false };
}

function readSegment(
  path: string,
  address: Omit<HlsSegment, 'range' | 'rangeLine' | 'durationSeconds' | 'roundingSeconds' | 'dateSeconds'>,
  { durationSeconds, roundingSeconds, dateSeconds, range, rangeLine, isGap }: SegmentTags,
  before: HlsSegment | undefined,
): HlsSegment {
  const position = { playlist: path, line: address.line };
  // A range without a start goes on where that of the segment before ends (RFC 8216bis §4.4.4.2).
  const follows =
    before?.uri === address.uri && before.range !== null ? before.range.offset + before.range.length : null;
  const times = { durationSeconds: durationSeconds ?? 0, roundingSeconds, dateSeconds };
  const segment = { ...address, range: readRange(range, follows, position), rangeLine, ...times };
  if (isGap || (durationSeconds !== null && Number.isFinite(durationSeconds) && durationSeconds >= 0)) return segment;
  const problem = durationSeconds === null ? 'an address without #EXTINF' : '#EXTINF without a duration';
  throw new AppError('PLAYLIST_MALFORMED', { ...position, problem });
}

function readMap(playlist: string, tag: HlsLine): HlsMap {
  const position = { playlist, line: tag.line };
  const uri = attributeOf(tag, 'URI');
  if (uri === undefined) throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: '#EXT-X-MAP without a URI' });
  return { uri, line: tag.line, range: readRange(attributeOf(tag, 'BYTERANGE') ?? null, 0, position) };
}

/**
 * Returns a byte range `length[@offset]`. `follows` is where one starts that does not say it; null where that
 * is an error.
 */
function readRange(value: string | null, follows: number | null, position: PlaylistPosition): ByteRange | null {
  if (value === null) return null;
  const [, length, start] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value) ?? [];
  const offset = start === undefined ? follows : Number(start);
  if (Number(length) > 0 && offset !== null) return { offset, length: Number(length) };
  throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: 'a byte range without a length or a start' });
}

/** Returns the path of the file that a line names. Throws what `FolderIndex.locate` throws. */
export function locate({ index, base, path: playlist }: HlsPlaylist, { uri, line }: HlsReference): string {
  return index.locate(base, uri, { playlist, line });
}

/** Returns the part of a file that a segment or a map is. */
export function partOf(playlist: HlsPlaylist, reference: HlsSegment | HlsMap): MediaPart {
  return playlist.index.partAt(locate(playlist, reference), reference.range);
}

/** Returns the playlists that a multivariant one names, in the order in which it names them, with their paths. */
export function referencesOf(playlist: PlaylistDocument): (PlaylistReference & { readonly path: string })[] {
  if (playlist.kind !== 'hls-multivariant') return [];
  return playlist.references.map((reference) => ({ ...reference, path: locate(playlist, reference) }));
}
