import type { FolderFile } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { sampleOfNames } from '#errors/entry.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { folderOf, isHidden } from './file-names.ts';
import type { FolderIndex } from './folder-index.ts';
import { hlsLines } from './hls-playlist.ts';
import type { PlaylistDocument } from './playlist-document.ts';

/** Attributes of HLS tags that hold addresses: URI, X-ASSET-URI, SERVER-URI and what vendors add. */
const ADDRESS_ATTRIBUTE = /[:,][A-Z0-9-]*UR[IL]="([^"]*)"/g;

/** The files of a publication, for choosing the other files to copy. */
interface PublicationFiles {
  /** The files that are neither its playlists nor signed media. */
  readonly candidates: readonly string[];
  /** Its playlists, init segments and fragments: what lies in their folders, and below, belongs to it. */
  readonly members: Iterable<string>;
  /** Playlists of the output: what they name belongs to it, wherever it lies. */
  readonly playlists: readonly PlaylistDocument[];
}

interface OtherFiles {
  readonly paths: readonly string[];
  /** Says what was left out, if anything. */
  readonly warnings: readonly Warning[];
}

/**
 * Chooses the files that are copied unchanged with a publication, so that its output plays: those in the folders
 * of its playlists, init segments and fragments and below them, and those that a playlist names. Hidden files, files in
 * hidden folders and links are left out: a pattern below `uploads/` must not publish `conf/.env`.
 */
export function chooseOtherFiles(
  files: readonly FolderFile[],
  index: FolderIndex,
  { candidates, members, playlists }: PublicationFiles,
): OtherFiles {
  const links = new Set(files.filter(({ isLink }) => isLink === true).map(({ path }) => path));
  const folders = new Set(Array.from(members, folderOf));
  const distant = new Set(candidates.filter((path) => !foldersAbove(path).some((folder) => folders.has(folder))));
  const named = new Set(
    distant.size === 0 ? [] : playlists.flatMap((each) => filesNamedBy(each, index)).map(({ path }) => path),
  );
  const isCopied = (path: string): boolean =>
    !isHidden(path) && !links.has(path) && (!distant.has(path) || named.has(path));
  const left = candidates.filter((path) => !isCopied(path));
  return {
    paths: candidates.filter(isCopied),
    warnings: left.length === 0 ? [] : [warning('FILES_NOT_CARRIED', sampleOfNames(left))],
  };
}

/** A file of the folder that a playlist names. */
interface NamedFile {
  readonly path: string;
  /** True where a tag names it as a key. */
  readonly isKey: boolean;
}

/** Returns the files of the folder that a playlist names, in the order in which it names them; one may be there twice. */
export function filesNamedBy(playlist: PlaylistDocument, index: FolderIndex): NamedFile[] {
  if (playlist.kind !== 'mpd') {
    return addressesIn(playlist).flatMap(({ address, line, isKey }) => {
      const path = locate(address, line, playlist.path, index);
      return path === undefined ? [] : [{ path, isKey }];
    });
  }
  const paths = playlist.representations.flatMap(({ init, segments, path }) => [
    ...(init === null ? [] : [init.path]),
    ...segments.map(({ part }) => part.path),
    ...(path === undefined ? [] : [path]),
  ]);
  return paths.map((path) => ({ path, isKey: false }));
}

function locate(address: string, line: number, playlist: string, index: FolderIndex): string | undefined {
  try {
    return index.tryLocate(index.baseOf(playlist), address, { playlist, line });
  } catch (error) {
    // It leads elsewhere, or is no address: it names nothing in this folder.
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** Tags whose addresses are those of keys. */
const KEY_TAG = /^#EXT-X-(?:SESSION-)?KEY:/;

interface Address {
  readonly address: string;
  readonly line: number;
  readonly isKey: boolean;
}

function addressesIn({ path, text }: PlaylistDocument): Address[] {
  return hlsLines(path, text).flatMap((text, index) => {
    const line = index + 1;
    if (!text.startsWith('#')) return text === '' ? [] : [{ address: text, line, isKey: false }];
    const isKey = KEY_TAG.test(text);
    return Array.from(text.matchAll(ADDRESS_ATTRIBUTE), ([, address = '']) => ({ address, line, isKey }));
  });
}

/** Returns all folders that a file lies in, the root included. */
function foldersAbove(path: string): string[] {
  const folders = [''];
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) folders.push(path.slice(0, at));
  return folders;
}
