import { type MediaPart, type PlaylistDocument, partKey } from '../publication.ts';
import type { FolderIndex } from './folder-index.ts';
import type { HlsMedia } from './hls-playlist.ts';
import { areWholeFragments } from './key-frame-playlists.ts';
import type { MpdDocument } from './mpd-document.ts';

/** What one playlist says about one init segment: which fragments belong to it, in playback order. */
export interface RenditionStatement {
  readonly playlist: string;
  /** Null where the playlist gives these fragments no init segment. */
  readonly init: StatedPart | null;
  readonly fragments: readonly StatedPart[];
}

/** A part and the line, counted from one, that names it. */
export interface StatedPart {
  readonly part: MediaPart;
  readonly line: number;
}

/**
 * What all playlists say, one statement per playlist and init segment. I-frame playlists come last, and say nothing where
 * they name parts of fragments, as they mostly do.
 */
export function statementsOf(playlists: readonly PlaylistDocument[], index: FolderIndex): RenditionStatement[] {
  const statements = playlists.flatMap((playlist) => {
    if (playlist.kind === 'mpd') return joinByInit(statementsOfMpd(playlist));
    return playlist.kind === 'hls-media' && !playlist.iFramesOnly ? joinByInit(statementsOfHls(playlist, index)) : [];
  });
  const iFrames = playlists.flatMap((playlist) =>
    playlist.kind === 'hls-media' && playlist.iFramesOnly ? joinByInit(statementsOfHls(playlist, index)) : [],
  );
  const named = new Set(statements.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  const isOfItsOwn = ({ fragments }: RenditionStatement): boolean =>
    !fragments.some(({ part }) => named.has(part.path)) &&
    areWholeFragments(
      fragments.map(({ part }) => part),
      index,
    );
  return [...statements, ...iFrames.filter(isOfItsOwn)];
}

/** A statement per EXT-X-MAP tag, which may change midway. */
function statementsOfHls(playlist: HlsMedia, index: FolderIndex): RenditionStatement[] {
  const base = index.baseOf(playlist.path);
  const locate = (uri: string, line: number): string => index.locate(base, uri, { playlist: playlist.path, line });
  return [...Map.groupBy(playlist.segments, ({ map }) => map)].map(([map, segments]) => ({
    playlist: playlist.path,
    init: map === null ? null : { part: index.partAt(locate(map.uri, map.line), map.range), line: map.line },
    fragments: segments.map(({ uri, line, range }) => ({ part: index.partAt(locate(uri, line), range), line })),
  }));
}

/** A statement per representation and period. */
function statementsOfMpd({ path, representations }: MpdDocument): RenditionStatement[] {
  return representations
    .filter(({ addressing }) => addressing !== 'none')
    .map(({ line, init, segments }) => ({
      playlist: path,
      init: init === null ? null : { part: init, line },
      fragments: segments.map(({ part }) => ({ part, line })),
    }));
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
