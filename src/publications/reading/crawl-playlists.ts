import type { UnlistedFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { FolderIndex } from './folder-index.ts';
import { hlsAttribute } from './hls-attributes.ts';
import type { HlsPlaylist } from './hls-playlist.ts';
import { readPlaylists } from './read-playlists.ts';
import { statementsOf } from './rendition-statement.ts';

const ELSEWHERE: ReadonlySet<string> = new Set(['PLAYLIST_LEAVES_FOLDER', 'PLAYLIST_MALFORMED']);

/**
 * Notes in a folder that cannot be listed what the playlist at `entryPath` refers to, and what the playlists among that
 * refer to. A reference that leads out of the folder is an error, as it is where the folder is read.
 */
export async function crawlPlaylists(folder: UnlistedFolder, entryPath: string, signal: AbortSignal): Promise<void> {
  const index = new FolderIndex(folder);
  const playlists = await readPlaylists(folder, index, [entryPath], signal);
  statementsOf(playlists, index);
  for (const playlist of playlists) if (playlist.kind !== 'mpd') noteOthers(playlist, index);
}

/** Keys, session data and whatever else tags name: players ask for it, and it is carried through where it is there. */
function noteOthers({ path, text }: HlsPlaylist, index: FolderIndex): void {
  for (const [at, line] of text.split('\n').entries()) {
    const uri = line.includes('URI=') ? hlsAttribute(line.trim(), 'URI') : undefined;
    if (uri === undefined) continue;
    try {
      index.tryLocate(index.baseOf(path), uri, { playlist: path, line: at + 1 });
    } catch (error) {
      // What lies elsewhere (`https:`, `skd:`, `data:`) stays there: players find it by its address.
      if (!(error instanceof AppError) || !ELSEWHERE.has(error.reason)) throw error;
    }
  }
}
