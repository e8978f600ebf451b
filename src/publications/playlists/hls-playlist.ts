import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { ByteRange } from '../media-part.ts';
import { hlsAttribute } from './hls-attributes.ts';
import type { HlsMap, HlsPlaylist, HlsReference, HlsSegment } from './playlist-document.ts';

/** Tags by which a playlist shows what it is; the first of them decides. */
const DECIDING_TAG = /^#(?:EXTINF|EXT-X-(?:TARGETDURATION|MEDIA|SESSION-DATA|SESSION-KEY|[A-Z-]*STREAM-INF)):/;

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF):/;

/** The lines of a playlist as they are meant: without white space around them, and with variables written out. */
export function hlsLines(path: string, text: string): readonly string[] {
  return expandVariables(
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
    if (isAddress(itemAt(lines, at))) next = at;
  }
  return below;
}

function isAddress(line: string): boolean {
  return line !== '' && !line.startsWith('#');
}

/** Attributes of a segment from the tags above its address. */
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

const REFERENCE = /\{\$([\w-]+)\}/g;

/** Characters that all variables of one playlist may come to when they are written out. */
const MAX_EXPANDED_LENGTH = 16 * 1024 * 1024;

/**
 * The lines of a playlist with the variables written out that it defines itself (EXT-X-DEFINE with NAME and VALUE, RFC
 * 8216bis §4.3). What a variable stands for that comes from another playlist, or with the player's request, is not known
 * here: an address made of one is refused.
 */
export function expandVariables(path: string, lines: readonly string[]): readonly string[] {
  if (!lines.some((line) => line.includes('{$'))) return lines;
  const values = new Map<string, string>();
  let length = 0;
  const writeOut = (reference: string, name: string): string => {
    const value = values.get(name) ?? reference;
    length += value.length;
    if (length <= MAX_EXPANDED_LENGTH) return value;
    const what = 'characters in variables, written out';
    throw new AppError('PLAYLIST_TOO_LARGE', { playlist: path, what, count: length, limit: MAX_EXPANDED_LENGTH });
  };
  return lines.map((line, index) => {
    const written = line.replace(REFERENCE, writeOut);
    const name = line.startsWith('#EXT-X-DEFINE:') ? hlsAttribute(line, 'NAME') : undefined;
    if (name !== undefined) values.set(name, hlsAttribute(line, 'VALUE') ?? '');
    const address = line.startsWith('#') ? (hlsAttribute(written, 'URI') ?? '') : written;
    if (address.search(REFERENCE) !== -1) throw unknownVariable(path, index + 1);
    return written;
  });
}

function unknownVariable(playlist: string, line: number): AppError {
  return new AppError('PLAYLIST_UNSUPPORTED', {
    playlist,
    line,
    feature: 'An address made of variables that the playlist does not define itself (EXT-X-DEFINE)',
    remedy: 'Write the address out.',
  });
}
