import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { playlistsIn } from '../find-publication.ts';
import { type MediaPart, partKey, type Rendition } from '../media-part.ts';
import { ENTRIES_FIELD, matchingPaths } from '../path-patterns.ts';
import { isHidden } from '../playlists/file-names.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import { referencesOf } from '../playlists/hls-playlist.ts';
import { MAX_LISTED_FRAGMENTS, MAX_RENDITIONS, refuseBeyond } from '../playlists/limits.ts';
import { filesNamedBy } from '../playlists/other-files.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import { parsePlaylist, readPlaylists, refusePartialSegments } from '../playlists/read-playlists.ts';
import {
  hasInit,
  type InitListing,
  type ListedFragment,
  listingsOf,
  type RenditionListing,
} from '../playlists/rendition-listings.ts';
import { isPresented } from '../presentation/presentation.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import { checkRanges } from '../reading/merge-renditions.ts';
import { type Choice, choicesOf } from './choices.ts';
import {
  type FoundInPlaylist,
  findCompressedFiles,
  findingsIn,
  findMisleadingNames,
  findNamesOfVariables,
  findPlayedGaps,
} from './playlist-findings.ts';
import { findUnboundMedia, type UnboundMedia } from './unbound-media.ts';
import { findUnlistedBoxes } from './unlisted-boxes.ts';

/** A rendition as playlists list it, whether its files are there or not. */
export interface ListedRendition {
  readonly init: MediaPart;
  readonly isInitMissing: boolean;
  /** One for each playlist with another order or choice of fragments; the first is the longest. */
  readonly orders: readonly ListedOrder[];
  /** The fragments of all orders whose files are there, each once. */
  readonly present: Rendition;
}

/** The fragments of a rendition in the playback order of one playlist; each part once, where it is played first. */
export interface ListedOrder {
  readonly playlist: string;
  readonly fragments: readonly ListedFragment[];
  /** Those that it plays again, with their positions in its playback order. */
  readonly repeats: readonly (ListedFragment & { readonly index: number })[];
}

/** The renditions of a folder as its playlists list them. */
export interface ListedPublication {
  readonly renditions: readonly ListedRendition[];
  /** Init segments that entries name which were not chosen. */
  readonly otherInits: readonly MediaPart[];
  readonly unbound: readonly UnboundMedia[];
  /** The playlists that are verified. */
  readonly playlists: readonly PlaylistDocument[];
  readonly entries: readonly Entry[];
  /** The paths that playlists name as those of playlists, by their own. */
  readonly names: PlaylistNames;
  /** Lines of them that players may read differently. */
  readonly findings: readonly FoundInPlaylist[];
  readonly listings: readonly RenditionListing[];
  readonly choices: readonly Choice[];
}

type PlaylistNames = ReadonlyMap<string, readonly string[]>;

/** A playlist that players are given the address of: no other playlist names it. */
export interface Entry {
  readonly path: string;
  /** The paths of the playlists that players reach from it, its own among them. */
  readonly reaches: ReadonlySet<string>;
  /** True for a media playlist, which offers one rendition. */
  readonly isOneRendition: boolean;
  /** The init segments of the media that they reach. */
  readonly inits: readonly MediaPart[];
}

/**
 * Reads what the playlists of a folder list, each for itself: one that was tampered with contradicts the others. Files
 * that are named and not there are kept. `chosen` are globs of the entries to read; all where it is null. Throws
 * `PUBLICATION_NOT_FOUND` where no playlist names fragments with an init segment, `PATTERN_NO_MATCH` and `PATTERN_INVALID`
 * for a glob, and `PLAYLIST_UNSUPPORTED` for low-latency playlists.
 */
export async function readListedPublication(
  folder: PublicationFolder,
  chosen: readonly string[] | null,
  signal: AbortSignal,
): Promise<ListedPublication> {
  const whole = new FolderIndex(folder, 'keep');
  const leadsTo = playlistsNamedIn(folder);
  const all = await readAll(folder, whole, leadsTo, signal);
  const names: PlaylistNames = new Map(
    all.map((playlist) => [playlist.path, referencesOf(playlist).map(({ path }) => path)]),
  );
  const reached = chosenEntries(entriesOf(names), chosen, (paths) =>
    all.flatMap((playlist) => (paths.has(playlist.path) ? leadsTo(playlist) : [])),
  );
  const verified = new Set(reached.flatMap(({ reaches }) => [...reaches]));
  // Only addresses of those that are verified are compared with one another.
  const index = chosen === null ? whole : new FolderIndex(folder, 'keep');
  const playlists =
    chosen === null
      ? all
      : await mapConcurrent(
          all.filter(({ path }) => verified.has(path)),
          1,
          ({ path, text }) => parsePlaylist(folder, index, path, text, signal),
        );
  const ofKeyFrames = namedAsKeyFramesOnly(playlists);
  refusePartialSegments(playlists);
  const listings = listingsOf(playlists);
  checkRanges(presentOnly(listings, index), index);
  const groups = Map.groupBy(listings.filter(hasInit), ({ init }) => partKey(init.part));
  if (groups.size === 0) throw new AppError('PUBLICATION_NOT_FOUND', { name: folder.name });
  refuseBeyond('init segments', groups.size, MAX_RENDITIONS);
  const fragmentCount = listings.reduce((sum, { fragments }) => sum + fragments.length, 0);
  refuseBeyond('fragments named in playlists', fragmentCount, MAX_LISTED_FRAGMENTS);
  return {
    renditions: [...groups.values()].map((group) => renditionOf(group, index)),
    otherInits:
      chosen === null
        ? []
        : initsOf(listingsOf(all)).filter((init) => whole.has(init.path) && !groups.has(partKey(init))),
    unbound: await findUnboundMedia(folder, playlists, listings, index, signal),
    playlists,
    names,
    listings,
    choices: choicesOf(playlists, listings),
    findings: [
      ...findingsIn(playlists.map((document) => ({ document, isPlayedAsMedia: !ofKeyFrames.has(document.path) }))),
      ...(chosen === null ? findMisleadingNames(folder, playlists) : []),
      ...findNamesOfVariables(folder),
      ...findPlayedGaps(playlists),
      ...(await findUnlistedBoxes(folder, playlists, signal)),
      // Behind all that names files.
      ...findCompressedFiles(index),
      ...index.ambiguous,
    ],
    entries: reached.map(({ path, reaches }) => {
      const own = listings.filter(({ playlist }) => reaches.has(playlist));
      const isOneRendition = playlists.some((each) => each.path === path && each.kind === 'hls-media');
      return { path, reaches, isOneRendition, inits: initsOf(own) };
    }),
  };
}

/** Returns a function that finds the files named as playlists that one leads to, by whatever address. */
function playlistsNamedIn(folder: PublicationFolder): (playlist: PlaylistDocument) => readonly string[] {
  // Not all that may be an address is one: it is compared with no other.
  const index = new FolderIndex(folder, 'keep');
  const known = new Map<string, readonly string[]>();
  return (playlist) => {
    const named =
      known.get(playlist.path) ??
      filesNamedBy(playlist, index)
        .map(({ path }) => path)
        .filter(isPresented);
    known.set(playlist.path, named);
    return named;
  };
}

/** Reads the playlists of a folder, and those of the hidden ones that they lead to: players load these, too. */
async function readAll(
  folder: PublicationFolder,
  index: FolderIndex,
  leadsTo: (playlist: PlaylistDocument) => readonly string[],
  signal: AbortSignal,
): Promise<PlaylistDocument[]> {
  const known = new Map<string, Promise<PlaylistDocument>>();
  const areHidden = [...index.paths].some((path) => isPresented(path) && isHidden(path));
  const hidden = new Set<string>();
  for (;;) {
    const count = hidden.size;
    const found = await playlistsIn(folder, index, null, signal, hidden);
    const all = await readPlaylists(folder, index, found, signal, known);
    if (!areHidden) return all;
    for (const path of all.flatMap(leadsTo)) if (isHidden(path)) hidden.add(path);
    if (hidden.size === count) return all;
  }
}

/** Returns the entries among playlists, with the playlists that each reaches. */
function entriesOf(named: PlaylistNames): Pick<Entry, 'path' | 'reaches'>[] {
  const inner = new Set([...named].flatMap(([path, paths]) => paths.filter((each) => each !== path)));
  const reachedFrom = (path: string): Set<string> => {
    // A set is walked in the order of insertion, and what is added on the way is walked too.
    const reaches = new Set([path]);
    for (const each of reaches) for (const next of named.get(each) ?? []) if (named.has(next)) reaches.add(next);
    return reaches;
  };
  const entries = [...named.keys()]
    .filter((path) => !inner.has(path))
    .map((path) => ({ path, reaches: reachedFrom(path) }));
  // Playlists that name one another in a circle have no entry: each of them is one.
  const reached = new Set(entries.flatMap(({ reaches }) => [...reaches]));
  const circular = [...named.keys()].filter((path) => !reached.has(path));
  return [...entries, ...circular.map((path) => ({ path, reaches: reachedFrom(path) }))];
}

/** Returns the playlists that others name as those of key frames, and none as anything else. */
function namedAsKeyFramesOnly(playlists: readonly PlaylistDocument[]): Set<string> {
  const uses = playlists.flatMap(referencesOf);
  const asMedia = new Set(uses.filter(({ isOfKeyFrames }) => !isOfKeyFrames).map(({ path }) => path));
  return new Set(uses.map(({ path }) => path).filter((path) => !asMedia.has(path)));
}

/** Returns the entries that globs choose, and those that players reach from them by other addresses, as of interstitials. */
function chosenEntries<Some extends Pick<Entry, 'path' | 'reaches'>>(
  entries: Some[],
  globs: readonly string[] | null,
  leadsTo: (paths: ReadonlySet<string>) => readonly string[],
): Some[] {
  if (globs === null) return entries;
  const paths = entries.map(({ path }) => path);
  const matching = new Set(globs.flatMap((glob) => [...matchingPaths(paths, glob, ENTRIES_FIELD)]));
  const chosen = new Set(entries.filter(({ path }) => matching.has(path)));
  for (const { reaches } of chosen) {
    const further = leadsTo(reaches);
    for (const entry of entries) if (further.some((path) => entry.reaches.has(path))) chosen.add(entry);
  }
  return [...chosen];
}

function initsOf(listings: readonly RenditionListing[]): MediaPart[] {
  return listings.filter(hasInit).map(({ init }) => init.part);
}

function presentOnly(listings: readonly RenditionListing[], index: FolderIndex): RenditionListing[] {
  return listings.map((listing) => ({
    ...listing,
    init: listing.init !== null && index.has(listing.init.part.path) ? listing.init : null,
    fragments: listing.fragments.filter(({ part }) => index.has(part.path)),
  }));
}

function renditionOf(group: readonly InitListing[], index: FolderIndex): ListedRendition {
  const init = itemAt(group, 0).init.part;
  const byFragments = new Map<string, ListedOrder>();
  for (const { playlist, fragments } of group) {
    const seen = new Set<string>();
    const once: ListedFragment[] = [];
    const repeats: ListedOrder['repeats'][number][] = [];
    for (const [index, fragment] of fragments.entries()) {
      const known = partKey(fragment.part);
      if (seen.has(known)) repeats.push({ ...fragment, index });
      else once.push(fragment);
      seen.add(known);
    }
    const key = fragments.map(({ part }) => partKey(part)).join('\n');
    if (!byFragments.has(key)) byFragments.set(key, { playlist, fragments: once, repeats });
  }
  const orders = [...byFragments.values()].sort((first, second) => second.fragments.length - first.fragments.length);
  const parts = new Map(
    orders.flatMap(({ fragments }) => fragments.map(({ part }): [string, MediaPart] => [partKey(part), part])),
  );
  const fragments = [...parts.values()].filter(({ path }) => index.has(path));
  return { init, isInitMissing: !index.has(init.path), orders, present: { init, fragments } };
}
