import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { MAX_UNLISTED_PLAYLIST_READS, refuseBeyond } from '../playlists/limits.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import { readPlaylists, refuseUnsignable } from '../playlists/read-playlists.ts';
import { type RenditionStatement, statementsOf } from '../playlists/rendition-statements.ts';

/** Playlists that no pattern matches and no matched playlist names, but which name signed media. */
export interface UnlistedPlaylists {
  readonly playlists: readonly PlaylistDocument[];
  /** About those that cannot be kept true. */
  readonly warnings: readonly Warning[];
}

/**
 * Finds the playlists that are rewritten as well though no pattern matches them, so that they play too. They do not decide
 * what is signed, and one that cannot be parsed is copied like any other file.
 */
export async function readUnlistedPlaylists(
  folder: SourceFolder,
  index: FolderIndex,
  paths: readonly string[],
  signed: readonly MediaPart[],
  signal: AbortSignal,
): Promise<UnlistedPlaylists> {
  const signedPaths = new Set(signed.map(({ path }) => path));
  const signedKeys = new Set(signed.map(partKey));
  const rangedPaths = new Set(signed.filter(({ range }) => range !== null).map(({ path }) => path));
  const unmatched = new Set(paths);
  const playlists = new Map<string, PlaylistDocument>();
  const warnings: Warning[] = [];
  const known = new Map<string, Promise<PlaylistDocument>>();
  let reads = 0;
  for (const path of paths.filter((candidate) => /\.(m3u8?|mpd)$/i.test(candidate))) {
    const read = await tryRead(folder, index, path, known, signal);
    reads += read.documents.length;
    refuseBeyond('playlists that no pattern claims', reads, MAX_UNLISTED_PLAYLIST_READS);
    const parts = read.statements.flatMap(partsOf);
    if (!parts.some((part) => signedPaths.has(part.path))) continue;
    for (const document of read.documents) if (unmatched.has(document.path)) playlists.set(document.path, document);
    const stale = parts.find((part) => rangedPaths.has(part.path) && !signedKeys.has(partKey(part)));
    if (stale === undefined) continue;
    warnings.push(warning('PLAYLIST_BROKEN_BY_SIGNING', { playlist: path, file: stale.path }));
  }
  return { playlists: [...playlists.values()], warnings };
}

interface ReadPlaylist {
  readonly documents: readonly PlaylistDocument[];
  readonly statements: readonly RenditionStatement[];
}

async function tryRead(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  known: Map<string, Promise<PlaylistDocument>>,
  signal: AbortSignal,
): Promise<ReadPlaylist> {
  try {
    const documents = await readPlaylists(folder, index, [path], signal, known);
    refuseUnsignable(documents);
    return { documents, statements: statementsOf(documents, index) };
  } catch (error) {
    signal.throwIfAborted();
    // No pattern matches it: a malformed one is copied like any other file.
    if (error instanceof AppError) return { documents: [], statements: [] };
    throw error;
  }
}

function partsOf({ init, fragments }: RenditionStatement): MediaPart[] {
  return (init === null ? fragments : [init, ...fragments]).map(({ part }) => part);
}
