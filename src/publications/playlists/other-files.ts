import { folderOf, foldersAbove } from '#bytes/path-overlap.ts';
import type { FolderFile } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type PlaylistPosition, sampleOfNames } from '#errors/entry.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { isPresented } from '../presentation/presentation.ts';
import { isHidden, sentInPlaceOf } from './file-names.ts';
import type { Base, FolderIndex } from './folder-index.ts';
import { enterBaseUrl, filesLike, MpdValues, PLACEHOLDER } from './mpd-values.ts';
import type { HlsPlaylist, PlaylistDocument } from './playlist-document.ts';
import type { XmlElement } from './xml-element.ts';

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
 * hidden folders and links are left out: a pattern below `uploads/` must not publish `conf/.env`. So are files that servers may
 * send in place of others: those are signed, and these hold what they were before.
 */
export function chooseOtherFiles(
  files: readonly FolderFile[],
  index: FolderIndex,
  { candidates, members, playlists }: PublicationFiles,
): OtherFiles {
  const links = new Set(files.filter(({ isLink }) => isLink === true).map(({ path }) => path));
  const folders = new Set(Array.from(members, folderOf));
  const distant = new Set(
    candidates.filter((path) => !['', ...foldersAbove(path)].some((folder) => folders.has(folder))),
  );
  const named = new Set(
    distant.size === 0 ? [] : playlists.flatMap((each) => filesNamedBy(each, index)).map(({ path }) => path),
  );
  const isSentInPlace = (plain: string | null): boolean =>
    plain !== null && (index.isServed(plain) || isPresented(plain));
  const isCopied = (path: string): boolean =>
    !isHidden(path) &&
    !links.has(path) &&
    !isSentInPlace(sentInPlaceOf(path)) &&
    (!distant.has(path) || named.has(path));
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

/**
 * Returns the files of the folder that a playlist names, in the order in which it names them; one may be there twice. Of an MPD,
 * those of its representations come first. Nobody knows all names by which players find addresses, so whatever leads to a file
 * counts as one.
 */
export function filesNamedBy(playlist: PlaylistDocument, index: FolderIndex): NamedFile[] {
  if (playlist.kind !== 'mpd') {
    const base = index.baseOf(playlist.path);
    return addressesIn(playlist).flatMap(({ address, line, isKey }) => {
      const path = locate(address, base, { playlist: playlist.path, line }, index);
      return path === undefined ? [] : [{ path, isKey }];
    });
  }
  const paths = playlist.representations.flatMap(({ init, segments, path }) => [
    ...(init === null ? [] : [init.path]),
    ...segments.map(({ part }) => part.path),
    ...(path === undefined ? [] : [path]),
  ]);
  // Of text and pictures, no tree binds what players count further.
  const counted = playlist.representations.flatMap(({ init, adjacent }) => (init === null ? adjacent : []));
  const values = new MpdValues(playlist.path, playlist.lineIndex);
  const base = index.baseOf(playlist.path);
  const beside = filesNamedBeside(playlist.root, { document: base, element: base }, index, values);
  return [...paths, ...counted.map(({ path }) => path), ...beside].map((path) => ({ path, isKey: false }));
}

/** Elements that hold keys and licences, or say when the segments of representations begin. */
const WITHOUT_FILES: ReadonlySet<string> = new Set(['ContentProtection', 'S']);
/** Attributes of SegmentTemplate that the segments of representations are read from. */
const READ_FROM: ReadonlySet<string> = new Set(['media', 'initialization']);

/** Bases of references: that of the MPD, and that of an element in it. */
interface Bases {
  readonly document: Base;
  readonly element: Base;
}

/** Finds the files that attributes and texts of an element name, and of those in it. */
function* filesNamedBeside(
  element: XmlElement,
  bases: Bases,
  index: FolderIndex,
  values: MpdValues,
): Generator<string> {
  if (WITHOUT_FILES.has(element.name)) return;
  const own = [...element.attributes].filter(([name]) => element.name !== 'SegmentTemplate' || !READ_FROM.has(name));
  const position = values.positionOf(element);
  for (const address of [...own.map(([, value]) => value), element.text].filter((each) => each !== '')) {
    for (const base of new Set(index.isUnlisted ? [bases.element] : [bases.document, bases.element])) {
      const path = locate(address, base, position, index);
      if (path !== undefined) yield path;
      if (!address.includes('$')) continue;
      values.countSearch(index);
      const reference = address.replace(/\$.*\$/, PLACEHOLDER);
      const like = withoutRefusal(() => filesLike(base, reference, position, index)) ?? [];
      yield* like.map((file) => file.path).sort();
    }
  }
  const inner = { ...bases, element: enterBaseUrl(bases.element, element, index, values) };
  for (const child of element.children) yield* filesNamedBeside(child, inner, index, values);
}

/** The ending of a name. In a folder that cannot be listed, nothing else that may be an address is asked for. */
const NAME_ENDING = /\.[a-z][a-z\d]{1,7}(?:[?#]|$)/i;

function locate(address: string, base: Base, position: PlaylistPosition, index: FolderIndex): string | undefined {
  if (index.isUnlisted && !NAME_ENDING.test(address)) return undefined;
  return withoutRefusal(() => index.tryLocate(base, address, position));
}

/** Returns undefined for an address that leads elsewhere, or is none: it names nothing in this folder. */
function withoutRefusal<Found>(find: () => Found): Found | undefined {
  try {
    return find();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** Tags whose addresses are those of keys. */
const KEY_TAG = /^EXT-X-(?:SESSION-)?KEY$/;

interface Address {
  readonly address: string;
  readonly line: number;
  readonly isKey: boolean;
}

function addressesIn({ lines }: HlsPlaylist): Address[] {
  return lines.flatMap(({ name, text, line }) => {
    if (name === null) return [{ address: text, line, isKey: false }];
    const quoted = Array.from(text.matchAll(/"([^"]+)"/g), ([, address = '']) => address);
    return quoted.map((address) => ({ address, line, isKey: KEY_TAG.test(name) }));
  });
}
