import * as HLS from 'hls-parser';
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

type ParsedPlaylist = ReturnType<typeof HLS.parse>;
type ParsedSegment = HLS.types.MediaPlaylist['segments'][number];

// Lenient, as players are: real playlists declare too low a version or round EXTINF past the target duration.
HLS.setOptions({ strictMode: false, silent: true });

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF):/;

/** The lines of a playlist as they are meant: without white space around them, and with variables written out. */
export function hlsLines(path: string, text: string): readonly string[] {
  return writeOutVariables(
    path,
    text.split('\n').map((line) => line.trim()),
  );
}

/** Parses an HLS playlist; an AppError that names the line where it is malformed. */
export function parseHlsPlaylist(path: string, text: string): HlsPlaylist {
  const lines = hlsLines(path, text);
  const parsed = parseLenient(path, withoutApostrophes(text));
  if (parsed.isMasterPlaylist) {
    return { kind: 'hls-multivariant', path, text, references: referencesIn(lines) };
  }
  const { isIFrame, segments } = parsed as HLS.types.MediaPlaylist;
  return {
    kind: 'hls-media',
    path,
    text,
    iFramesOnly: isIFrame === true,
    // Tags behind the last address, as EXT-X-DATERANGE, are a segment without one to the parser.
    segments: readSegments(path, lines, segments.filter(hasAddress)),
  };
}

function hasAddress({ uri }: ParsedSegment): boolean {
  return (uri as string | undefined) !== undefined && uri !== '';
}

/** The parser takes apostrophes for quotation marks. Addresses and attributes are read from the lines themselves. */
function withoutApostrophes(text: string): string {
  return text.replaceAll("'", '_');
}

function parseLenient(path: string, text: string): ParsedPlaylist {
  try {
    return HLS.parse(text);
  } catch (cause) {
    const line = firstFailingLine(text);
    throw new AppError(
      'PLAYLIST_MALFORMED',
      { playlist: path, line, problem: 'no HLS tag or attribute list' },
      { cause },
    );
  }
}

/** The parser does not say where it failed: the shortest beginning of the playlist that fails ends with the culprit. */
function firstFailingLine(text: string): number {
  const lines = text.split('\n');
  let passing = 0;
  let failing = lines.length;
  while (failing - passing > 1) {
    const middle = Math.floor((passing + failing) / 2);
    try {
      HLS.parse(lines.slice(0, middle).join('\n'));
      passing = middle;
    } catch {
      // Failing is what is being looked for.
      failing = middle;
    }
  }
  return failing;
}

function referencesIn(lines: readonly string[]): HlsReference[] {
  const references: HlsReference[] = [];
  for (const [index, line] of lines.entries()) {
    const uri = isAddress(line) ? line : REFERRING_TAG.test(line) ? hlsAttribute(line, 'URI') : undefined;
    if (uri !== undefined) references.push({ uri, line: index + 1 });
  }
  return references;
}

function isAddress(line: string): boolean {
  return line !== '' && !line.startsWith('#');
}

function readSegments(path: string, lines: readonly string[], parsed: readonly ParsedSegment[]): HlsSegment[] {
  const addressLines = lines.flatMap((line, index) => (isAddress(line) ? [index + 1] : []));
  if (addressLines.length !== parsed.length) {
    const line = addressLines[parsed.length] ?? lines.length;
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line, problem: 'an address without #EXTINF' });
  }
  const segments: HlsSegment[] = [];
  let map: HlsMap | null = null;
  let from = 0;
  for (const [index, { byterange, duration, gap }] of parsed.entries()) {
    const line = addressLines[index] as number;
    map = lastMap(path, lines, from, line) ?? map;
    from = line;
    if (gap === true) continue;
    const place = { playlist: path, line };
    const durationSeconds = readDuration(path, line, duration);
    segments.push({
      uri: lines[line - 1] as string,
      line,
      durationSeconds,
      range: checkedRange(byterange, place),
      map,
    });
  }
  return segments;
}

/** The last EXT-X-MAP in the lines behind `from` and before `to`, both counted from one. */
function lastMap(path: string, lines: readonly string[], from: number, to: number): HlsMap | undefined {
  for (let line = to - 1; line > from; line -= 1) {
    const text = lines[line - 1] as string;
    if (!text.startsWith('#EXT-X-MAP:')) continue;
    const place = { playlist: path, line };
    const uri = hlsAttribute(text, 'URI');
    if (uri === undefined) throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: '#EXT-X-MAP without a URI' });
    return { uri, line, range: readMapRange(hlsAttribute(text, 'BYTERANGE'), place) };
  }
  return undefined;
}

/** A byte range `length[@offset]`; of a map it starts at the file's beginning where it does not say. */
function readMapRange(value: string | undefined, place: { playlist: string; line: number }): ByteRange | null {
  if (value === undefined) return null;
  const [, length, offset] = /^(\d{1,15})(?:@(\d{1,15}))?$/.exec(value) ?? [];
  return checkedRange({ length: Number(length), offset: Number(offset ?? 0) }, place);
}

function checkedRange(range: ByteRange | undefined, place: { playlist: string; line: number }): ByteRange | null {
  if (range === undefined) return null;
  const { offset, length } = range;
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length <= 0) {
    throw new AppError('PLAYLIST_MALFORMED', { ...place, problem: 'a byte range without a length or a start' });
  }
  return { offset, length };
}

function readDuration(path: string, line: number, duration: unknown): number {
  if (typeof duration === 'number' && Number.isFinite(duration) && duration >= 0) return duration;
  throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line, problem: '#EXTINF without a duration' });
}
