import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError, unlessRefused } from '#errors/app-error.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import { filesNamedBy } from '../playlists/other-files.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import { parsePlaylist, readPlaylistText } from '../playlists/read-playlists.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import {
  type BoundFragment,
  type BoundInit,
  type HashedFile,
  type HashedPlaylist,
  isPresented,
} from './presentation.ts';

/** The binding of a part of a signed rendition; `other` for a fragment that is not as it was signed. */
export type BoundPart = BoundInit | BoundFragment | 'other';

/** Files that are hashed at once. */
const MAX_CONCURRENT_FILES = 8;

/** A playlist with its text; the text is null where it cannot be read as one. */
export interface PlaylistText extends HashedFile {
  readonly text: string | null;
  /** The text as it was read before; undefined where it was not. */
  readonly read: PlaylistDocument | undefined;
}

/** A folder with playlists whose files are hashed. */
interface PresentedFolder {
  readonly folder: Pick<SourceFolder, 'name' | 'files' | 'open' | 'baseUrl'>;
  /** Returns the binding of an init segment or a fragment of a signed rendition; null for any other file. */
  bindingOf(path: string): BoundPart | null;
  /** Hashes a file of the folder; null where it is not there. */
  hash(path: string): Promise<HashedFile | null>;
}

/**
 * Hashes the files that each playlist names and no Merkle tree binds, in the order of their first mention: text, pictures,
 * media of renditions that are not signed. Init segments of signed renditions stand among them with their maps. Keys, playlists
 * and addresses outside the folder are left out. A playlist that cannot be read names nothing.
 */
export async function hashNamedFiles(
  playlists: readonly PlaylistText[],
  { folder, bindingOf, hash }: PresentedFolder,
  signal: AbortSignal,
): Promise<HashedPlaylist[]> {
  // With its address: players resolve addresses from the root of a server by it, and absolute ones.
  const index = new FolderIndex(folder, 'keep');
  const others = new Set(playlists.map(({ path }) => path));
  const hashed: HashedPlaylist[] = [];
  for (const playlist of playlists) {
    const { path, sizeBytes, digest } = playlist;
    const named = (await unlessRefused(namedFiles(folder, index, playlist, signal), isMalformed)) ?? [];
    const bound = named.map((each) => [each, bindingOf(each)] as const);
    const stated = bound.filter(([each, part]) => !isFragment(part) && !isPresented(each) && !others.has(each));
    const files = await mapConcurrent(stated, MAX_CONCURRENT_FILES, async ([each, part]) =>
      part !== null && part !== 'other' && 'path' in part ? part : await hash(each),
    );
    const fragments = bound.flatMap(([, part]) => (isFragment(part) && part !== 'other' ? [part] : []));
    hashed.push({ path, sizeBytes, digest, named: files.filter((file) => file !== null), fragments });
  }
  return hashed;
}

function isFragment(part: BoundPart | null): part is BoundFragment | 'other' {
  return part === 'other' || (part !== null && 'location' in part);
}

async function namedFiles(
  folder: SourceFolder,
  index: FolderIndex,
  { path, text, read }: PlaylistText,
  signal: AbortSignal,
): Promise<string[]> {
  if (text === null) return [];
  // The files that an MPD names were located where its folder lies.
  const isRead = read !== undefined && read.kind !== 'mpd';
  const document = isRead ? read : await parsePlaylist(folder, index, path, text, signal);
  const named = filesNamedBy(document, index).filter(({ path: each, isKey }) => !isKey && index.has(each));
  return [...new Set(named.map(({ path: each }) => each))];
}

/** Returns the text of a playlist; null where it cannot be read as one. */
export function textOf(
  folder: Pick<PublicationFolder, 'readPlaylist'>,
  path: string,
  signal: AbortSignal,
): Promise<string | null> {
  return unlessRefused(readPlaylistText(folder, path, signal), isMalformed);
}

/** Returns true for an error of what a playlist says, whatever reads it. */
export function isMalformed(error: unknown): error is AppError {
  return error instanceof AppError && /^(?:PLAYLIST|PUBLICATION|SEGMENT_INDEX|BYTE_RANGE)_/.test(error.reason);
}
