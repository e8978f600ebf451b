import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { PlaylistPosition } from '#errors/entry.ts';
import type { ByteRange } from '../media-part.ts';
import { hlsAttribute } from './hls-attributes.ts';
import type { HlsMap, HlsMedia, HlsPlaylist, HlsSegment, PlaylistReference } from './playlist-document.ts';

/** Tags by which a playlist shows what it is; the first of them decides. */
const DECIDING_TAG = /^#(?:EXTINF|EXT-X-(?:TARGETDURATION|MEDIA|SESSION-DATA|SESSION-KEY|[A-Z-]*STREAM-INF)):/;

/** A tag with an address that does not begin its line: a comment, and a tag to some players. */
const HIDDEN_TAG = /.#EXT-X-(?:MEDIA|STREAM-INF):/;

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF):/;

const OTHER_LINE_END = /[\r\u2028\u2029]/;

/**
 * Returns the lines of a playlist as they are meant: without white space around them, and with variables written out.
 * Throws `PLAYLIST_MALFORMED` where a line holds a character at which some players end it (RFC 8216 §4.1: lines end
 * with a line feed).
 */
export function hlsLines(path: string, text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim());
  const broken = lines.findIndex((line) => OTHER_LINE_END.test(line));
  if (broken !== -1) {
    const problem = 'a character inside the line ends it for some players (carriage return, U+2028 or U+2029)';
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line: broken + 1, problem });
  }
  return expandVariables(path, lines);
}

/**
 * Parses an HLS playlist, in one pass over its lines; an AppError that names the line where it is malformed. Lenient, as
 * players are: tags that signing does not need are not checked.
 */
export function parseHlsPlaylist(path: string, text: string): HlsPlaylist {
  const lines = hlsLines(path, text);
  if (isMultivariant(lines)) return { kind: 'hls-multivariant', path, text, references: referencesIn(path, lines) };
  const iFramesOnly = lines.some((line) => /^#EXT-X-I-FRAMES-ONLY\b/.test(line));
  return { kind: 'hls-media', path, text, iFramesOnly, ...readSegments(path, lines) };
}

function isMultivariant(lines: readonly string[]): boolean {
  const first = lines.find((line) => DECIDING_TAG.test(line)) ?? '#EXTINF:';
  return !/^#(?:EXTINF|EXT-X-TARGETDURATION):/.test(first);
}

function referencesIn(path: string, lines: readonly string[]): PlaylistReference[] {
  const references: PlaylistReference[] = [];
  let variant = '';
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    const position = { playlist: path, line };
    if (HIDDEN_TAG.test(text)) {
      throw new AppError('PLAYLIST_MALFORMED', {
        ...position,
        problem: 'a tag does not stand at the start of its line',
      });
    }
    if (text.startsWith('#EXT-X-STREAM-INF:')) variant = text;
    const uri = isAddress(text) ? text : REFERRING_TAG.test(text) ? uriIn(text, position) : undefined;
    if (uri === undefined) continue;
    const isOfKeyFrames = text.startsWith('#EXT-X-I-FRAME-STREAM-INF:');
    const isVariant = isAddress(text);
    const soundGroup = isVariant ? hlsAttribute(variant, 'AUDIO') : soundGroupOf(text);
    const isOfMedia = isVariant || isMediaRendition(text);
    references.push({ uri, line, isOfMedia, isOfKeyFrames, isVariant, soundGroup: soundGroup ?? null });
  }
  return references;
}

/** Returns true for the tag of a rendition of sound or pictures. */
function isMediaRendition(tag: string): boolean {
  return tag.startsWith('#EXT-X-MEDIA:') && !/^(?:SUBTITLES|CLOSED-CAPTIONS)$/.test(hlsAttribute(tag, 'TYPE') ?? '');
}

function soundGroupOf(tag: string): string | undefined {
  return hlsAttribute(tag, 'TYPE') === 'AUDIO' ? hlsAttribute(tag, 'GROUP-ID') : undefined;
}

/** Returns the URI attribute of a tag. Throws `PLAYLIST_MALFORMED` where players may find another one in it. */
function uriIn(tag: string, position: PlaylistPosition): string | undefined {
  const uri = hlsAttribute(tag, 'URI');
  const count = [...tag.replace(/"[^"]*"/g, '""').matchAll(/\bURI\s*=/gi)].length;
  if (count <= (uri === undefined ? 0 : 1)) return uri;
  throw new AppError('PLAYLIST_MALFORMED', {
    ...position,
    problem: 'its URI stands there twice, or behind what is no attribute',
  });
}

/** Returns for every line the position of the next address below it; the number of lines where there is none. */
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

const FIRST_DISCONTINUITY = '#EXT-X-DISCONTINUITY-SEQUENCE:';

/** Attributes of a segment from the tags above its address. */
interface SegmentTags {
  durationSeconds: number | null;
  roundingSeconds: number;
  range: string | null;
  isGap: boolean;
}

function readSegments(path: string, lines: readonly string[]): Pick<HlsMedia, 'segments' | 'gaps'> {
  const segments: HlsSegment[] = [];
  const gaps: HlsSegment[] = [];
  let map: HlsMap | null = null;
  let tags = noTags();
  let discontinuities = 0;
  let before: HlsSegment | undefined;
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    if (text.startsWith('#EXT-X-MAP:')) map = readMap(path, text, line);
    else if (/^#EXT-X-DISCONTINUITY\s*$/.test(text)) discontinuities += 1;
    else if (text.startsWith(FIRST_DISCONTINUITY)) discontinuities = Number(text.slice(FIRST_DISCONTINUITY.length));
    else if (text.startsWith('#')) readTag(text, tags);
    else if (text !== '') {
      const segment = readSegment(path, { uri: text, line, map, discontinuities }, tags, before);
      (tags.isGap ? gaps : segments).push(segment);
      before = segment;
      tags = noTags();
    }
  }
  return { segments, gaps };
}

function noTags(): SegmentTags {
  return { durationSeconds: null, roundingSeconds: 0, range: null, isGap: false };
}

function readTag(text: string, tags: SegmentTags): void {
  if (text.startsWith('#EXTINF:')) {
    const [stated = ''] = text.slice('#EXTINF:'.length).split(',', 1);
    tags.durationSeconds = Number.parseFloat(stated) || 0;
    tags.roundingSeconds = 0.5 / 10 ** (/\.(\d*)/.exec(stated)?.[1] ?? '').length;
  } else if (text.startsWith('#EXT-X-BYTERANGE:')) tags.range = text.slice('#EXT-X-BYTERANGE:'.length).trim();
  else if (/^#EXT-X-GAP\b/.test(text)) tags.isGap = true;
}

function readSegment(
  path: string,
  address: Pick<HlsSegment, 'uri' | 'line' | 'map' | 'discontinuities'>,
  { durationSeconds, roundingSeconds, range, isGap }: SegmentTags,
  before: HlsSegment | undefined,
): HlsSegment {
  const position = { playlist: path, line: address.line };
  // A range without a start goes on where that of the segment before ends (RFC 8216bis §4.4.4.2).
  const follows =
    before?.uri === address.uri && before.range !== null ? before.range.offset + before.range.length : null;
  const times = { durationSeconds: durationSeconds ?? 0, roundingSeconds };
  const segment = { ...address, range: readRange(range, follows, position), ...times };
  if (isGap) return segment;
  if (durationSeconds === null) {
    throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: 'an address without #EXTINF' });
  }
  if (Number.isFinite(durationSeconds) && durationSeconds >= 0) return segment;
  throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: '#EXTINF without a duration' });
}

function readMap(playlist: string, text: string, line: number): HlsMap {
  const position = { playlist, line };
  const uri = uriIn(text, position);
  if (uri === undefined) throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: '#EXT-X-MAP without a URI' });
  return { uri, line, range: readRange(hlsAttribute(text, 'BYTERANGE') ?? null, 0, position) };
}

/**
 * Returns a byte range `length[@offset]`. `follows` is where one starts that does not say it; null where that
 * is an error.
 */
function readRange(
  value: string | null,
  follows: number | null,
  position: { playlist: string; line: number },
): ByteRange | null {
  if (value === null) return null;
  const [, length, start] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value) ?? [];
  const offset = start === undefined ? follows : Number(start);
  if (Number(length) > 0 && offset !== null) return { offset, length: Number(length) };
  throw new AppError('PLAYLIST_MALFORMED', { ...position, problem: 'a byte range without a length or a start' });
}

const REFERENCE = /\{\$([\w-]+)\}/g;

/** Characters that all variables of one playlist may come to when they are written out. */
const MAX_EXPANDED_LENGTH = 16 * 1024 * 1024;

/**
 * Returns the lines of a playlist with the variables written out that it defines itself (EXT-X-DEFINE with NAME and
 * VALUE, RFC 8216bis §4.3). What a variable stands for that comes from another playlist, or with the player's request,
 * is not known here: an address made of one is refused.
 */
function expandVariables(path: string, lines: readonly string[]): readonly string[] {
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
