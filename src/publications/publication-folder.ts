import { basename } from 'node:path';
import { memorySource, readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { MAX_PLAYLIST_BYTES, MAX_PLAYLISTS_BYTES, refuseBeyond, refuseLarger } from './playlists/limits.ts';

/**
 * A folder whose playlists are read once in an operation: a server may answer a second request with another text, and the text that is
 * judged has to be the one that is hashed, copied and rewritten.
 */
export interface PublicationFolder extends SourceFolder {
  /**
   * Returns a playlist or MPD, which stays in memory: `open` gives the same bytes from then on. Throws `PLAYLIST_TOO_LARGE`,
   * and `PUBLICATION_TOO_LARGE` for more than 256 MiB together.
   */
  readPlaylist(path: string, signal: AbortSignal): Promise<Buffer>;
}

/** Makes a folder one whose playlists are read once. An operation does it once: every call begins anew. */
export function publicationFolder(folder: SourceFolder): PublicationFolder {
  const { name, files, baseUrl } = folder;
  const playlists = new Map<string, Promise<Buffer>>();
  let bytesRead = 0;
  const read = async (path: string, signal: AbortSignal): Promise<Buffer> => {
    let countedBytes = 0;
    try {
      return await withSource(folder, { path }, signal, async (source) => {
        const { sizeBytes } = source;
        refuseLarger(path, 'bytes', sizeBytes, MAX_PLAYLIST_BYTES);
        countedBytes = sizeBytes;
        bytesRead += sizeBytes;
        refuseBeyond('bytes of playlists', bytesRead, MAX_PLAYLISTS_BYTES);
        return await readRange(source, 0, sizeBytes, signal);
      });
    } catch (error) {
      bytesRead -= countedBytes;
      playlists.delete(path);
      throw error;
    }
  };
  return {
    name,
    files,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(folder.hides !== undefined && { hides: folder.hides.bind(folder) }),
    ...(folder.isElsewhere !== undefined && { isElsewhere: folder.isElsewhere.bind(folder) }),
    async open(path, signal) {
      const known = playlists.get(path);
      return known === undefined ? await folder.open(path, signal) : memorySource(basename(path), await known);
    },
    readPlaylist(path, signal) {
      const reading = playlists.get(path) ?? read(path, signal);
      playlists.set(path, reading);
      return reading;
    },
  };
}
