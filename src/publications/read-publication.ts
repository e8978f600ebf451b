import { type SourceFolder, type UnlistedFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError, unlessRefused } from '#errors/app-error.ts';
import { sampleOfNames } from '#errors/entry.ts';
import { distinctWarnings, type Warning, warning } from '#errors/warning.ts';
import { type InitLayout, readInitLayout } from './fragments/init-layout.ts';
import { readerOf } from './fragments/top-boxes.ts';
import { describePart, partsIn, type Rendition } from './media-part.ts';
import { type MatchedPaths, matchPatterns } from './path-patterns.ts';
import { isHidden, isPicture, isPlainText, needsPackaging } from './playlists/file-names.ts';
import { FolderIndex } from './playlists/folder-index.ts';
import { FILE_ATTRIBUTE } from './playlists/hls-tags.ts';
import { chooseOtherFiles, filesNamedBy } from './playlists/other-files.ts';
import type { HlsPlaylist, PlaylistDocument } from './playlists/playlist-document.ts';
import {
  isPlaylist,
  parsePlaylist,
  readPlaylists,
  readPlaylistText,
  refuseUnsignable,
} from './playlists/read-playlists.ts';
import {
  gapsOf,
  hasInit,
  type InitListing,
  initsOfAdjacent,
  listedParts,
  listingsOf,
  type RenditionListing,
  wholeFilesOf,
} from './playlists/rendition-listings.ts';
import { isPresented } from './presentation/presentation.ts';
import type { Publication, PublicationPatterns } from './publication.ts';
import { type PublicationFolder, publicationFolder } from './publication-folder.ts';
import { checkRanges, type MergedRendition, mergeListings } from './reading/merge-renditions.ts';
import { addUnlistedFiles, readUnlistedPlaylists } from './reading/unlisted-files.ts';

/**
 * Reads which parts of a folder are to be signed: which fragments belong to which init segment, and in which
 * order. Playlists decide; where none names a file, folders, names and natural order do. A rendition is signed as
 * soon as a pattern matches its init segment or one of its fragments, and then whole: a fragment left out would be
 * an invalid one.
 *
 * Throws `PATTERN_INVALID` or `PATTERN_NO_MATCH` for a pattern, and what `readMatchedPublication` throws.
 */
export async function readPublication(
  folder: PublicationFolder,
  patterns: PublicationPatterns,
  signal: AbortSignal,
): Promise<Publication> {
  const matched = matchPatterns(
    folder.files.map(({ path }) => path),
    patterns,
  );
  return await readMatchedPublication(folder, matched, signal);
}

/**
 * Reads which parts of a folder are to be signed, as `readPublication` does, for paths that are already matched. Throws
 * `PLAYLIST_…` for a playlist, `PUBLICATION_TOO_LARGE`, `SEGMENTS_NEED_PACKAGING`, `INIT_WITHOUT_FRAGMENTS`,
 * `SEGMENT_INDEX_MALFORMED`, `BYTE_RANGE_PAST_END`, or `FRAGMENT_…` for fragments that no rendition or several could
 * have, that overlap, or that playlists order differently.
 */
export async function readMatchedPublication(
  folder: PublicationFolder,
  matched: MatchedPaths,
  signal: AbortSignal,
): Promise<Publication> {
  const index = new FolderIndex(folder);
  const playlists = await readPlaylists(folder, index, matched.playlists, signal);
  refuseUnsignable(playlists);
  const listings = listingsOf(playlists);
  // A gap is not played, so its file is not signed with the fragments: it is carried like any other one.
  const gaps = playlists.flatMap(gapsOf);
  const unknown = refuseAmbiguous(playlists, index);
  checkRanges(listings, index);
  const { signed, warnings } = signedListings(listings, wholeFilesOf(playlists), matched);
  const named = new Set([...pathsOfPlaylists(playlists), ...listings.flatMap(pathsOf), ...gaps]);

  const listed = mergeListings(signed);
  const adjacent = initsOfAdjacent(playlists);
  const renditions = await addUnlistedFiles(listed, folder, matched, { named, adjacent }, signal);
  for (const { init, fragments } of renditions) {
    if (fragments.length === 0) throw new AppError('INIT_WITHOUT_FRAGMENTS', { init: describePart(init) });
  }
  const signedParts = partsIn(renditions);
  const members = [...playlists, ...signedParts].map(({ path }) => path);
  const others = without(index.paths, members);
  const shown = others.filter((path) => !isHidden(path));
  const unlisted = await readUnlistedPlaylists(folder, index, shown, signedParts, signal);
  const ofUnlisted = warningOfUnlisted([...listings, ...listingsOf(unlisted.playlists)], renditions);
  const copied = chooseOtherFiles(folder.files, index, {
    candidates: without(others, pathsOfPlaylists(unlisted.playlists)),
    members,
    playlists: [...playlists, ...unlisted.playlists],
  });
  const carried = [...pathsOfPlaylists(unlisted.playlists), ...copied.paths.filter(isPresented)];
  const unknownInCarried = await refuseAmbiguousCarried(folder, carried, signal);
  return {
    renditions: renditions.map(({ init, fragments }) => ({ init, fragments })),
    playlists: [...playlists, ...unlisted.playlists],
    otherPaths: copied.paths,
    warnings: [
      ...unknown,
      ...unknownInCarried,
      ...warnings,
      ...index.warnings,
      ...unlisted.warnings,
      ...ofUnlisted,
      ...copied.warnings,
    ],
  };
}

/**
 * Refuses playlists that players may read differently: nobody could tell what was signed. Throws `PLAYLIST_AMBIGUOUS`.
 * Returns warnings about names that are not known.
 */
function refuseAmbiguous(playlists: readonly PlaylistDocument[], index: FolderIndex): Warning[] {
  const findings = [...playlists.flatMap((playlist) => playlist.findings), ...index.ambiguous];
  const ambiguous = findings.find(({ kind }) => kind === 'ambiguous');
  if (ambiguous !== undefined) {
    const { playlist, line, problem } = ambiguous;
    throw new AppError('PLAYLIST_AMBIGUOUS', { playlist, line, problem });
  }
  const [unknown] = findings;
  if (unknown === undefined) return [];
  const { playlist, line, problem: name } = unknown;
  return [warning('PLAYLIST_NAMES_UNKNOWN', { playlist, line, name, count: findings.length })];
}

/**
 * Refuses the same of playlists that no pattern matches: they are signed with the files that they name, which are those that this
 * service reads. Throws `PLAYLIST_…` for one that cannot be read; no player takes a file for one that does not begin as one.
 */
async function refuseAmbiguousCarried(
  folder: PublicationFolder,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Warning[]> {
  // Keeps addresses of files that are not there: signing need not refuse them, because nothing plays them.
  const index = new FolderIndex(folder, 'keep');
  const playlists: PlaylistDocument[] = [];
  for (const path of paths) {
    const text = await readPlaylistText(folder, path, signal);
    if (isPlaylist(text)) playlists.push(await parsePlaylist(folder, index, path, text, signal));
  }
  return refuseAmbiguous(playlists, index);
}

function pathsOfPlaylists(playlists: readonly PlaylistDocument[]): string[] {
  return playlists.map(({ path }) => path);
}

function without(paths: Iterable<string>, excluded: readonly string[]): string[] {
  const left = new Set(excluded);
  return [...paths].filter((path) => !left.has(path));
}

/**
 * Returns the listings of renditions that a pattern matches. Throws when one of them cannot be signed. `wholeFiles` are
 * those of files without segments, of which only a warning tells.
 */
function signedListings(
  listings: readonly RenditionListing[],
  wholeFiles: readonly RenditionListing[],
  matched: MatchedPaths,
): { signed: InitListing[]; warnings: Warning[] } {
  const signed: InitListing[] = [];
  const warnings: Warning[] = [];
  const unmatched = new Set<string>();
  for (const listing of listings) {
    const { init, fragments } = listing;
    const isMatched =
      (init !== null && matched.inits.has(init.part.path)) ||
      fragments.some(({ part }) => matched.fragments.has(part.path));
    if (!isMatched) {
      const [first] = init === null ? fragments : [init];
      if (first !== undefined && !isAuxiliary(first.part.path)) unmatched.add(first.part.path);
      continue;
    }
    if (hasInit(listing)) signed.push(listing);
    else warnings.push(warningOfUnsigned(listing));
  }
  for (const path of wholeFiles.flatMap(pathsOf)) {
    if (!matched.inits.has(path) && !matched.fragments.has(path) && !isAuxiliary(path)) unmatched.add(path);
  }
  if (unmatched.size > 0) warnings.push(warning('RENDITIONS_NOT_SIGNED', sampleOfNames([...unmatched])));
  return { signed, warnings: distinctWarnings(warnings) };
}

/** Returns true for subtitles as text and pictures, which carry no manifest. */
function isAuxiliary(path: string): boolean {
  return isPlainText(path) || isPicture(path);
}

/**
 * Returns the warning for text segments without an init segment, which are copied unsigned. Throws for other
 * fragments without one.
 */
function warningOfUnsigned({ playlist, fragments }: RenditionListing): Warning {
  for (const { part } of fragments) {
    if (needsPackaging(part.path)) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: part.path });
    if (!isPlainText(part.path)) throw new AppError('FRAGMENT_WITHOUT_INIT', { fragment: part.path, candidates: [] });
  }
  return warning('TEXT_SEGMENTS_UNSIGNED', { playlist });
}

/** Returns a warning about signed files that no playlist names, where playlists name others; no warning where there are none. */
function warningOfUnlisted(listings: readonly RenditionListing[], renditions: readonly MergedRendition[]): Warning[] {
  const named = new Set(listings.flatMap(pathsOf));
  const unlisted = partsIn(renditions).filter(({ path }) => !named.has(path));
  if (named.size === 0 || unlisted.length === 0) return [];
  return [warning('FRAGMENTS_NOT_IN_PLAYLISTS', sampleOfNames(unlisted.map(({ path }) => path)))];
}

function pathsOf(listing: RenditionListing): string[] {
  return listedParts(listing).map(({ part }) => part.path);
}

/** Init segments that are read at once. */
const MAX_CONCURRENT_INITS = 8;

/** Reads the layout of every rendition's init segment, in order. Throws `FRAGMENT_MALFORMED` when one is none. */
export function readInits(
  folder: SourceFolder,
  renditions: readonly Rendition[],
  signal: AbortSignal,
): Promise<InitLayout[]> {
  return mapConcurrent(renditions, MAX_CONCURRENT_INITS, ({ init }) =>
    withSource(folder, init, signal, async (source) => await readInitLayout(await readerOf(source, init, signal))),
  );
}

const ELSEWHERE: ReadonlySet<string> = new Set(['PLAYLIST_LEAVES_FOLDER', 'PLAYLIST_MALFORMED']);

/**
 * Reports to a folder that cannot be listed the files that the playlist at `entryPath` refers to, and those that
 * the playlists among them refer to, and the playlists that were read. A reference that leads out of the folder is an
 * error, as it is where the folder is read. Playlists that others lead to by other addresses, as of interstitials, need not be there.
 */
export async function crawlPlaylists(folder: UnlistedFolder, entryPath: string, signal: AbortSignal): Promise<void> {
  const index = new FolderIndex(folder);
  const read = publicationFolder(folder);
  const known = new Map<string, Promise<PlaylistDocument>>();
  const found = new Set(await readPlaylists(read, index, [entryPath], signal, known));
  // A set is walked in the order of insertion, and what is added on the way is walked too.
  for (const playlist of found) {
    folder.keepFile(playlist.path, await read.readPlaylist(playlist.path, signal));
    if (playlist.kind !== 'mpd') noteOthers(playlist);
    for (const { path } of filesNamedBy(playlist, index).filter((each) => isPresented(each.path))) {
      const further = await unlessRefused(readPlaylists(read, index, [path], signal, known));
      for (const each of further ?? []) found.add(each);
    }
  }
  listingsOf([...found]);
}

/** Reports the keys, session data and other files that tags name: players fetch them, and they are copied where they exist. */
function noteOthers({ path: playlist, index, base, lines }: HlsPlaylist): void {
  for (const { name, text, line } of lines) {
    for (const [, address = ''] of name === null ? [] : text.matchAll(FILE_ATTRIBUTE)) {
      try {
        index.tryLocate(base, address, { playlist, line });
      } catch (error) {
        // A reference to another server or scheme (`https:`, `skd:`, `data:`) is left as it is: players resolve it.
        if (!(error instanceof AppError) || !ELSEWHERE.has(error.reason)) throw error;
      }
    }
  }
}
