import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { type MediaPart, type PlaylistDocument, partKey } from '../publication.ts';
import type { FolderIndex } from './folder-index.ts';
import { refuseBeyond, UNCLAIMED_READS_MAX_COUNT } from './publication-limits.ts';
import { readPlaylists } from './read-playlists.ts';
import { refuseUnsignable } from './refuse-unsignable.ts';
import { type RenditionStatement, statementsOf } from './rendition-statement.ts';

/** Playlists that no pattern claims and no claimed playlist names, but which name signed media all the same. */
export interface Bystanders {
  readonly playlists: readonly PlaylistDocument[];
  /** About those that cannot be kept true. */
  readonly warnings: readonly Warning[];
}

/**
 * Finds the playlists that are rewritten along though nobody asked for them, so that they play too. They have no say in
 * what is signed, and one that cannot be read is a file like any other.
 */
export async function readBystanders(
  folder: SourceFolder,
  index: FolderIndex,
  paths: readonly string[],
  signed: readonly MediaPart[],
  signal: AbortSignal,
): Promise<Bystanders> {
  const signedPaths = new Set(signed.map(({ path }) => path));
  const signedKeys = new Set(signed.map(partKey));
  const rangedPaths = new Set(signed.filter(({ range }) => range !== null).map(({ path }) => path));
  const unclaimed = new Set(paths);
  const playlists = new Map<string, PlaylistDocument>();
  const warnings: Warning[] = [];
  const known = new Map<string, Promise<PlaylistDocument>>();
  let reads = 0;
  for (const path of paths.filter((candidate) => /\.(m3u8?|mpd)$/i.test(candidate))) {
    const read = await tryRead(folder, index, path, known, signal);
    reads += read.documents.length;
    refuseBeyond('playlists that no pattern claims', reads, UNCLAIMED_READS_MAX_COUNT);
    const parts = read.statements.flatMap(partsOf);
    if (!parts.some((part) => signedPaths.has(part.path))) continue;
    for (const document of read.documents) if (unclaimed.has(document.path)) playlists.set(document.path, document);
    const stale = parts.find((part) => rangedPaths.has(part.path) && !signedKeys.has(partKey(part)));
    if (stale === undefined) continue;
    warnings.push(warning('PLAYLIST_BROKEN_BY_SIGNING', { playlist: path, file: stale.path }));
  }
  return { playlists: [...playlists.values()], warnings };
}

interface ReadBystander {
  readonly documents: readonly PlaylistDocument[];
  readonly statements: readonly RenditionStatement[];
}

async function tryRead(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  known: Map<string, Promise<PlaylistDocument>>,
  signal: AbortSignal,
): Promise<ReadBystander> {
  try {
    const documents = await readPlaylists(folder, index, [path], signal, known);
    refuseUnsignable(documents);
    return { documents, statements: statementsOf(documents, index) };
  } catch (error) {
    signal.throwIfAborted();
    // Nobody asked for it, so what is wrong with it is nobody's concern.
    if (error instanceof AppError) return { documents: [], statements: [] };
    throw error;
  }
}

function partsOf({ init, fragments }: RenditionStatement): MediaPart[] {
  return (init === null ? fragments : [init, ...fragments]).map(({ part }) => part);
}
