import type { PlaylistDocument } from '../publication.ts';
import type { FolderIndex } from '../reading/folder-index.ts';
import { hlsAttribute } from '../reading/hls-attributes.ts';
import type { HlsMedia } from '../reading/hls-playlist.ts';
import { holdsPictures } from './asides.ts';
import type { ExistingRendition } from './existing-publication.ts';

type Statement = Pick<ExistingRendition, 'language' | 'label' | 'role' | 'isDefault'>;

const NOTHING_STATED: Statement = { language: null, label: null, role: null, isDefault: false };

/** A rendition for every media playlist of segments, once, whichever playlists name it. */
export function renditionsOfHls(playlists: readonly PlaylistDocument[], index: FolderIndex): ExistingRendition[] {
  const stated = statementsIn(playlists, index);
  return playlists.flatMap((playlist) => {
    if (playlist.kind !== 'hls-media' || playlist.iFramesOnly || playlist.segments.length === 0) return [];
    if (holdsPictures(playlist.segments.map(({ uri }) => uri))) return [];
    return [renditionOf(playlist, index, stated.get(playlist.path) ?? NOTHING_STATED)];
  });
}

function renditionOf(playlist: HlsMedia, index: FolderIndex, stated: Statement): ExistingRendition {
  const { path, segments } = playlist;
  const base = index.baseOf(path);
  const locate = (uri: string, line: number): string => index.locate(base, uri, { playlist: path, line });
  const map = segments[0]?.map ?? null;
  const parts = segments.map(({ uri, line, range }) => index.partAt(locate(uri, line), range));
  const init = map === null ? [] : [index.partAt(locate(map.uri, map.line), map.range)];
  return {
    name: path,
    playlist: path,
    parts: [...init, ...parts],
    hasInit: map !== null,
    isText: map === null && parts.every((part) => /\.(?:vtt|webvtt)$/i.test(part.path)),
    durationSeconds: segments.reduce((sum, { durationSeconds }) => sum + durationSeconds, 0),
    ...stated,
  };
}

/** What EXT-X-MEDIA tags say of the playlists that they name, by path. */
function statementsIn(playlists: readonly PlaylistDocument[], index: FolderIndex): Map<string, Statement> {
  const stated = new Map<string, Statement>();
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-multivariant') continue;
    const base = index.baseOf(playlist.path);
    for (const [at, line] of playlist.text.split('\n').entries()) {
      const uri = line.startsWith('#EXT-X-MEDIA:') ? hlsAttribute(line, 'URI') : undefined;
      if (uri === undefined) continue;
      stated.set(index.locate(base, uri, { playlist: playlist.path, line: at + 1 }), statementOf(line));
    }
  }
  return stated;
}

function statementOf(line: string): Statement {
  const characteristics = hlsAttribute(line, 'CHARACTERISTICS') ?? '';
  const role = characteristics.includes('describes-video')
    ? 'description'
    : characteristics.includes('transcribes-spoken-dialog')
      ? 'caption'
      : null;
  return {
    language: hlsAttribute(line, 'LANGUAGE') ?? null,
    label: hlsAttribute(line, 'NAME') ?? null,
    role,
    isDefault: hlsAttribute(line, 'TYPE') === 'AUDIO' && hlsAttribute(line, 'DEFAULT') === 'YES',
  };
}
