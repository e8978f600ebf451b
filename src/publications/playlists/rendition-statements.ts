import type { SourceFolder } from '#bytes/source-folder.ts';
import { itemAt } from '#errors/assert.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import { FolderIndex } from './folder-index.ts';
import { hlsAttribute } from './hls-attributes.ts';
import { addressesBelow, hlsLines } from './hls-playlist.ts';
import type {
  HlsMedia,
  HlsMultivariant,
  MpdDocument,
  MpdRepresentation,
  PlaylistDocument,
} from './playlist-document.ts';

/** The fragments that one playlist assigns to one init segment, in playback order. */
export interface RenditionStatement {
  readonly playlist: string;
  /** Null where the playlist gives these fragments no init segment. */
  readonly init: StatedPart | null;
  readonly fragments: readonly StatedFragment[];
}

/** A fragment, and when it is played. */
export interface StatedFragment extends StatedPart {
  /** Seconds since the start of the programme; null where the playlist does not tell. */
  readonly startSeconds: number | null;
}

/** A part and the line, counted from one, that names it. */
export interface StatedPart {
  readonly part: MediaPart;
  readonly line: number;
}

/**
 * Returns the statements of all playlists, one per playlist and init segment. I-frame playlists come last, and state nothing where
 * they name parts of fragments, as they mostly do.
 */
export function statementsOf(playlists: readonly PlaylistDocument[], index: FolderIndex): RenditionStatement[] {
  const statements = playlists.flatMap((playlist) => {
    if (playlist.kind === 'mpd') return joinByInit(statementsOfMpd(playlist));
    return playlist.kind === 'hls-media' && !playlist.iFramesOnly ? joinByInit(statementsOfHls(playlist, index)) : [];
  });
  const named = new Set(statements.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  const isOfItsOwn = ({ fragments }: RenditionStatement): boolean =>
    !fragments.some(({ part }) => named.has(part.path)) &&
    areWholeFragments(
      fragments.map(({ part }) => part),
      index,
    );
  return [...statements, ...iFrameStatementsOf(playlists, index).filter(isOfItsOwn)];
}

/** Returns the statements of I-frame playlists, also those that name parts of fragments. */
export function iFrameStatementsOf(playlists: readonly PlaylistDocument[], index: FolderIndex): RenditionStatement[] {
  return playlists.flatMap((playlist) =>
    playlist.kind === 'hls-media' && playlist.iFramesOnly ? joinByInit(statementsOfHls(playlist, index)) : [],
  );
}

/** A statement per EXT-X-MAP tag, which may change midway. */
function statementsOfHls(playlist: HlsMedia, index: FolderIndex): RenditionStatement[] {
  const base = index.baseOf(playlist.path);
  const locate = (uri: string, line: number): string => index.locate(base, uri, { playlist: playlist.path, line });
  let startSeconds = 0;
  const timed = playlist.segments.map((segment) => {
    const start = startSeconds;
    startSeconds += segment.durationSeconds;
    return { ...segment, startSeconds: start };
  });
  return [...Map.groupBy(timed, ({ map }) => map)].map(([map, segments]) => ({
    playlist: playlist.path,
    init: map === null ? null : { part: index.partAt(locate(map.uri, map.line), map.range), line: map.line },
    fragments: segments.map(({ uri, line, range, startSeconds: start }) => ({
      part: index.partAt(locate(uri, line), range),
      line,
      startSeconds: start,
    })),
  }));
}

/** A statement per representation and period. */
function statementsOfMpd({ path, representations }: MpdDocument): RenditionStatement[] {
  const addressed = representations.filter(({ addressing }) => addressing !== 'none');
  let periodStart: number | null = 0;
  const statements: RenditionStatement[] = [];
  for (const [, inPeriod] of Map.groupBy(addressed, ({ lineage }) => lineage[1])) {
    const ends = inPeriod.map(({ line, init, segments }) => {
      const { fragments, endSeconds } = timedFragments(segments, line, periodStart);
      statements.push({ playlist: path, init: init === null ? null : { part: init, line }, fragments });
      return endSeconds;
    });
    periodStart = ends.reduce(
      (latest, end) => (latest === null || end === null ? null : Math.max(latest, end)),
      periodStart,
    );
  }
  return statements;
}

/** Returns the segments of a representation with the times at which they start, and the end of the last one. */
function timedFragments(
  segments: MpdRepresentation['segments'],
  line: number,
  periodStart: number | null,
): { fragments: StatedFragment[]; endSeconds: number | null } {
  let endSeconds = periodStart;
  const fragments = segments.map(({ part, durationSeconds }) => {
    const startSeconds = endSeconds;
    endSeconds = endSeconds === null || durationSeconds === null ? null : endSeconds + durationSeconds;
    return { part, line, startSeconds };
  });
  return { fragments, endSeconds };
}

/** Joins statements of one playlist about the same init segment: what it comes back to later is played later. */
function joinByInit(statements: readonly RenditionStatement[]): RenditionStatement[] {
  const groups = Map.groupBy(statements, (statement) =>
    statement.init === null ? statement : partKey(statement.init.part),
  );
  return [...groups.values()].map((group) => {
    const [first] = group as [RenditionStatement];
    return group.length === 1 ? first : { ...first, fragments: group.flatMap(({ fragments }) => fragments) };
  });
}

/**
 * Returns true when the segments of an I-frame playlist are fragments, and not frames inside some: mostly they are byte ranges that
 * end with the frame, and what follows in the file belongs to the fragment.
 */
export function areWholeFragments(parts: readonly MediaPart[], index: FolderIndex): boolean {
  for (const [path, inFile] of Map.groupBy(parts, ({ path }) => path)) {
    const ranges = inFile.flatMap(({ range }) => range ?? []).sort((first, second) => first.offset - second.offset);
    const [first] = ranges;
    if (first === undefined) continue;
    let end = first.offset;
    for (const { offset, length } of ranges) {
      if (offset !== end) return false;
      end += length;
    }
    if (end !== index.sizeOf(path)) return false;
  }
  return true;
}

/** The kind of media that a playlist says an init segment is for, and the line that says it. */
export interface StatedKind {
  readonly kind: 'video' | 'audio';
  readonly playlist: string;
  readonly line: number;
}

/** Codecs of pictures, by the beginnings of their names in CODECS (RFC 6381). */
const VIDEO_CODECS = /^(?:avc|hvc|hev|dvh|dva|dav|av01|vp0?[89]|vvc|vvi|mp4v|jxs|lvc)/;

/** Returns the kinds that playlists state for their init segments, by `partKey`; no entry where they state none. */
export function statedKinds(folder: SourceFolder, playlists: readonly PlaylistDocument[]): Map<string, StatedKind[]> {
  const index = new FolderIndex(folder);
  const kinds = new Map<string, StatedKind[]>();
  const note = (init: MediaPart, stated: StatedKind): void => {
    const known = kinds.get(partKey(init));
    if (known === undefined) kinds.set(partKey(init), [stated]);
    else known.push(stated);
  };
  const ofPlaylists = new Map(
    playlists.flatMap((playlist) =>
      playlist.kind === 'hls-multivariant' ? [...kindsOfVariants(playlist, index)] : [],
    ),
  );
  for (const { playlist, init } of statementsOf(playlists, index)) {
    const stated = ofPlaylists.get(playlist);
    if (init !== null && stated !== undefined) note(init.part, stated);
  }
  for (const playlist of playlists) {
    if (playlist.kind !== 'mpd') continue;
    for (const { init, line, lineage } of playlist.representations) {
      const [, , set, representation] = lineage;
      const kind = kindOfMpd((name) => representation.attributes.get(name) ?? set.attributes.get(name));
      if (init !== null && kind !== null) note(init, { kind, playlist: playlist.path, line });
    }
  }
  return kinds;
}

function kindOfMpd(attribute: (name: string) => string | undefined): StatedKind['kind'] | null {
  const type = attribute('contentType') ?? attribute('mimeType')?.split('/')[0];
  return type === 'video' || type === 'audio' ? type : null;
}

/** Returns the kinds that a multivariant playlist states for its media playlists, by path. */
function* kindsOfVariants({ path, text }: HlsMultivariant, index: FolderIndex): Generator<[string, StatedKind]> {
  const base = index.baseOf(path);
  const lines = hlsLines(path, text);
  const addresses = addressesBelow(lines);
  for (const [at, line] of lines.entries()) {
    const isMedia = line.startsWith('#EXT-X-MEDIA:');
    if (!isMedia && !line.startsWith('#EXT-X-STREAM-INF:')) continue;
    const kind = isMedia ? kindOfMedia(line) : kindOfVariant(line);
    const uriAt = isMedia ? at : itemAt(addresses, at);
    const uri = isMedia ? hlsAttribute(line, 'URI') : lines[uriAt];
    if (kind === null || uri === undefined) continue;
    const position = { playlist: path, line: uriAt + 1 };
    yield [index.locate(base, uri, position), { kind, playlist: path, line: at + 1 }];
  }
}

function kindOfMedia(line: string): StatedKind['kind'] | null {
  const type = hlsAttribute(line, 'TYPE');
  return type === 'AUDIO' ? 'audio' : type === 'VIDEO' ? 'video' : null;
}

/** A variant has the pictures itself, unless they are in a group of their own; its codecs include those of its groups. */
function kindOfVariant(line: string): StatedKind['kind'] | null {
  if (hlsAttribute(line, 'VIDEO') !== undefined) return null;
  const codecs = hlsAttribute(line, 'CODECS')
    ?.split(',')
    .map((codec) => codec.trim().toLowerCase());
  if (hlsAttribute(line, 'RESOLUTION') !== undefined || codecs?.some((codec) => VIDEO_CODECS.test(codec))) {
    return 'video';
  }
  return codecs === undefined || codecs.every((codec) => /^(?:st|wv)/.test(codec)) ? null : 'audio';
}
