import type { UnlistedFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { FolderIndex } from './playlists/folder-index.ts';
import { hlsAttribute } from './playlists/hls-attributes.ts';
import type { HlsPlaylist } from './playlists/playlist-document.ts';
import { readPlaylists } from './playlists/read-playlists.ts';
import { statementsOf } from './playlists/rendition-statements.ts';

const ELSEWHERE: ReadonlySet<string> = new Set(['PLAYLIST_LEAVES_FOLDER', 'PLAYLIST_MALFORMED']);

/**
 * Reports to a folder that cannot be listed the files that the playlist at `entryPath` refers to, and those that the playlists among them
 * refer to. A reference that leads out of the folder is an error, as it is where the folder is read.
 */
export async function crawlPlaylists(folder: UnlistedFolder, entryPath: string, signal: AbortSignal): Promise<void> {
  const index = new FolderIndex(folder);
  const playlists = await readPlaylists(folder, index, [entryPath], signal);
  statementsOf(playlists, index);
  for (const playlist of playlists) if (playlist.kind !== 'mpd') noteOthers(playlist, index);
}

/** Reports the keys, session data and other files that tags name: players fetch them, and they are copied where they exist. */
function noteOthers({ path, text }: HlsPlaylist, index: FolderIndex): void {
  for (const [at, line] of text.split('\n').entries()) {
    const uri = line.includes('URI=') ? hlsAttribute(line.trim(), 'URI') : undefined;
    if (uri === undefined) continue;
    try {
      index.tryLocate(index.baseOf(path), uri, { playlist: path, line: at + 1 });
    } catch (error) {
      // A reference to another server or scheme (`https:`, `skd:`, `data:`) is left as it is: players resolve it.
      if (!(error instanceof AppError) || !ELSEWHERE.has(error.reason)) throw error;
    }
  }
}
