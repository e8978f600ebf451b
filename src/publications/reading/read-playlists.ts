import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { PlaylistDocument } from '../publication.ts';
import type { FolderIndex } from './folder-index.ts';
import { parseHlsPlaylist } from './hls-playlist.ts';
import { isXml, readPlaylistText } from './playlist-text.ts';
import { PLAYLISTS_MAX_COUNT } from './publication-limits.ts';
import { readMpd } from './read-mpd.ts';

/**
 * Reads the playlists at `entryPaths` and every media playlist that they name. Each is read once, so playlists that
 * name one another in a circle end. `known` keeps what was read, and what went wrong, for further calls.
 */
export async function readPlaylists(
  folder: SourceFolder,
  index: FolderIndex,
  entryPaths: Iterable<string>,
  signal: AbortSignal,
  known = new Map<string, Promise<PlaylistDocument>>(),
): Promise<PlaylistDocument[]> {
  const found = new Set(entryPaths);
  const documents: PlaylistDocument[] = [];
  // A set is walked in the order of insertion, and what is added on the way is walked too.
  for (const path of found) {
    if (found.size > PLAYLISTS_MAX_COUNT) {
      throw new AppError('PUBLICATION_TOO_LARGE', { what: 'playlists', count: found.size, limit: PLAYLISTS_MAX_COUNT });
    }
    signal.throwIfAborted();
    const reading = known.get(path) ?? readPlaylist(folder, index, path, signal);
    known.set(path, reading);
    const document = await reading;
    documents.push(document);
    if (document.kind !== 'hls-multivariant') continue;
    for (const { uri, line } of document.references) {
      found.add(index.locate(index.baseOf(path), uri, { playlist: path, line }));
    }
  }
  return documents;
}

async function readPlaylist(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  signal: AbortSignal,
): Promise<PlaylistDocument> {
  const text = await readPlaylistText(folder, path, signal);
  if (isXml(text)) return await readMpd(folder, index, path, text, signal);
  if (/^\uFEFF?#EXTM3U/.test(text)) return parseHlsPlaylist(path, text);
  throw new AppError('PLAYLIST_MALFORMED', {
    playlist: path,
    line: 1,
    problem: 'it is neither HLS (#EXTM3U) nor an MPD',
  });
}
