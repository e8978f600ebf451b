import type { FolderIndex } from './folder-index.ts';
import type { HlsMap, HlsMedia } from './hls-playlist.ts';
import type { MpdDocument } from './mpd-document.ts';
import type { MediaPart, PlaylistDocument } from './publication.ts';

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

/** What a media playlist says: one statement per init segment, as EXT-X-MAP may change midway. */
function statementsOfHls(playlist: HlsMedia, index: FolderIndex): RenditionStatement[] {
  const base = index.baseOf(playlist.path);
  const locate = (uri: string, line: number): string => index.locate(base, uri, { playlist: playlist.path, line });
  const byMap = new Map<HlsMap | null, StatedPart[]>();
  for (const { uri, line, range, map } of playlist.segments) {
    const fragments = byMap.get(map) ?? [];
    fragments.push({ part: index.partAt(locate(uri, line), range), line });
    byMap.set(map, fragments);
  }
  return [...byMap].map(([map, fragments]) => ({
    playlist: playlist.path,
    init: map === null ? null : { part: index.partAt(locate(map.uri, map.line), map.range), line: map.line },
    fragments,
  }));
}

/** What an MPD says: one statement per representation and period. */
function statementsOfMpd({ path, representations }: MpdDocument): RenditionStatement[] {
  return representations
    .filter(({ addressing }) => addressing !== 'none')
    .map(({ line, init, segments }) => ({
      playlist: path,
      init: init === null ? null : { part: init, line },
      fragments: segments.map(({ part }) => ({ part, line })),
    }));
}

/** What all playlists say. I-frame playlists come last: what they name are mostly parts of other playlists' fragments. */
export function statementsOf(playlists: readonly PlaylistDocument[], index: FolderIndex): RenditionStatement[] {
  const statements: RenditionStatement[] = [];
  const iFrames: RenditionStatement[] = [];
  for (const playlist of playlists) {
    if (playlist.kind === 'mpd') statements.push(...statementsOfMpd(playlist));
    if (playlist.kind === 'hls-media')
      (playlist.iFramesOnly ? iFrames : statements).push(...statementsOfHls(playlist, index));
  }
  const named = new Set(statements.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  return [...statements, ...iFrames.filter(({ fragments }) => !fragments.some(({ part }) => named.has(part.path)))];
}
