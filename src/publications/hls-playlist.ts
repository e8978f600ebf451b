import * as HLS from 'hls-parser';
import { AppError } from '#errors/app-error.ts';
import type { ByteRange } from './publication.ts';

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

/** An EXT-X-MAP tag. The same object stands at every segment that it applies to. */
export interface HlsMap extends HlsReference {
  readonly range: ByteRange | null;
}

type ParsedPlaylist = ReturnType<typeof HLS.parse>;
type ParsedSegment = HLS.types.MediaPlaylist['segments'][number];

// Lenient, as players are: real playlists declare too low a version or round EXTINF past the target duration.
HLS.setOptions({ strictMode: false, silent: true });

/** Tags of a multivariant playlist whose URI attribute names a media playlist. */
const REFERRING_TAG = /^#EXT-X-(?:MEDIA|I-FRAME-STREAM-INF|IMAGE-STREAM-INF):/;

/** Parses an HLS playlist; an AppError that names the line where it is malformed or asks for what cannot be signed. */
export function parseHlsPlaylist(path: string, text: string): HlsPlaylist {
  const lines = text.split('\n').map((line) => line.trim());
  const parsed = parseLenient(path, text);
  if (parsed.isMasterPlaylist) {
    return { kind: 'hls-multivariant', path, text, references: referencesIn(lines) };
  }
  refuseUnsignable(path, lines);
  const { isIFrame, segments } = parsed as HLS.types.MediaPlaylist;
  return {
    kind: 'hls-media',
    path,
    text,
    iFramesOnly: isIFrame === true,
    segments: readSegments(path, lines, segments),
  };
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
    const uri = isAddress(line) ? line : REFERRING_TAG.test(line) ? uriAttribute(line) : undefined;
    if (uri !== undefined) references.push({ uri, line: index + 1 });
  }
  return references;
}

function isAddress(line: string): boolean {
  return line !== '' && !line.startsWith('#');
}

function uriAttribute(line: string): string | undefined {
  return /[:,]URI="([^"]*)"/.exec(line)?.[1];
}

/** Refuses what makes segments unreadable or unsignable, whoever plays them. */
function refuseUnsignable(path: string, lines: readonly string[]): void {
  for (const [index, line] of lines.entries()) {
    const place = { playlist: path, line: index + 1 };
    if (/^#EXT-X-KEY:.*METHOD=AES-128/.test(line)) {
      throw new AppError('PLAYLIST_UNSUPPORTED', {
        ...place,
        feature: 'A segment that is encrypted as a whole (METHOD=AES-128)',
        remedy: 'Use sample encryption (SAMPLE-AES, SAMPLE-AES-CTR), or sign before encrypting.',
      });
    }
    if (/^#EXT-X-(?:PART|PRELOAD-HINT):/.test(line)) {
      throw new AppError('PLAYLIST_UNSUPPORTED', {
        ...place,
        feature: 'A low-latency playlist of partial segments',
        remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
      });
    }
  }
}

function readSegments(path: string, lines: readonly string[], parsed: readonly ParsedSegment[]): HlsSegment[] {
  const addressLines = lines.flatMap((line, index) => (isAddress(line) ? [index + 1] : []));
  const mapLines = lines.flatMap((line, index) => (line.startsWith('#EXT-X-MAP:') ? [index + 1] : []));
  if (addressLines.length !== parsed.length) {
    const line = addressLines[parsed.length] ?? lines.length;
    throw new AppError('PLAYLIST_MALFORMED', { playlist: path, line, problem: 'an address without #EXTINF' });
  }
  const maps = new Map<object, HlsMap>();
  const segments: HlsSegment[] = [];
  for (const [index, segment] of parsed.entries()) {
    const line = addressLines[index] as number;
    const map = segment.map ? (maps.get(segment.map) ?? readMap(path, segment.map, mapLines, line)) : null;
    if (map !== null) maps.set(segment.map, map);
    if (segment.gap === true) continue;
    const range = readRange(segment.byterange, { playlist: path, line });
    segments.push({ uri: segment.uri, line, durationSeconds: readDuration(path, line, segment.duration), range, map });
  }
  return segments;
}

function readMap(path: string, map: ParsedSegment['map'], mapLines: readonly number[], segmentLine: number): HlsMap {
  const line = mapLines.findLast((candidate) => candidate < segmentLine) ?? segmentLine;
  return { uri: map.uri, line, range: readRange(map.byterange, { playlist: path, line }) };
}

function readRange(range: ByteRange | undefined, place: { playlist: string; line: number }): ByteRange | null {
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
