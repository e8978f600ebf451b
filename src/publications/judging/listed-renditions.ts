import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { playlistsIn } from '../find-publication.ts';
import { type MediaPart, partKey, type Rendition } from '../media-part.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import { MAX_LISTED_FRAGMENTS, MAX_RENDITIONS, refuseBeyond } from '../playlists/limits.ts';
import { readPlaylists, refusePartialSegments } from '../playlists/read-playlists.ts';
import { type ListedFragment, listingsOf, type RenditionListing } from '../playlists/rendition-listings.ts';
import { checkRanges } from '../reading/merge-renditions.ts';
import { findUnboundMedia, type UnboundMedia } from './unbound-media.ts';

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
}

/** The renditions of a folder as its playlists list them. */
interface ListedPublication {
  readonly renditions: readonly ListedRendition[];
  readonly unbound: readonly UnboundMedia[];
}

/**
 * Reads what the playlists of a folder list, each for itself: one that was tampered with contradicts the others. Files
 * that are named and not there are kept. Throws `PUBLICATION_NOT_FOUND` where no playlist names fragments with an init
 * segment, and `PLAYLIST_UNSUPPORTED` for low-latency playlists.
 */
export async function readListedPublication(folder: SourceFolder, signal: AbortSignal): Promise<ListedPublication> {
  const index = new FolderIndex(folder, 'keep');
  const entries = await playlistsIn(folder, index, null, signal);
  const playlists = await readPlaylists(folder, index, entries, signal);
  refusePartialSegments(playlists);
  const listings = listingsOf(playlists, index);
  checkRanges(presentOnly(listings, index), index);
  const groups = Map.groupBy(
    listings.filter(({ init }) => init !== null),
    ({ init }) => (init === null ? '' : partKey(init.part)),
  );
  if (groups.size === 0) throw new AppError('PUBLICATION_NOT_FOUND', { name: folder.name });
  refuseBeyond('init segments', groups.size, MAX_RENDITIONS);
  const fragmentCount = listings.reduce((sum, { fragments }) => sum + fragments.length, 0);
  refuseBeyond('fragments named in playlists', fragmentCount, MAX_LISTED_FRAGMENTS);
  return {
    renditions: [...groups.values()].map((group) => renditionOf(group, index)),
    unbound: await findUnboundMedia(folder, playlists, listings, index, signal),
  };
}

function presentOnly(listings: readonly RenditionListing[], index: FolderIndex): RenditionListing[] {
  return listings.map((listing) => ({
    ...listing,
    init: listing.init !== null && index.has(listing.init.part.path) ? listing.init : null,
    fragments: listing.fragments.filter(({ part }) => index.has(part.path)),
  }));
}

function renditionOf(group: readonly RenditionListing[], index: FolderIndex): ListedRendition {
  const init = group[0]?.init?.part as MediaPart;
  const byFragments = new Map<string, ListedOrder>();
  for (const { playlist, fragments } of group) {
    const once = [...Map.groupBy(fragments, ({ part }) => partKey(part)).values()].flatMap(([played]) => played ?? []);
    const key = once.map(({ part }) => partKey(part)).join('\n');
    if (!byFragments.has(key)) byFragments.set(key, { playlist, fragments: once });
  }
  const orders = [...byFragments.values()].sort((first, second) => second.fragments.length - first.fragments.length);
  const parts = new Map(
    orders.flatMap(({ fragments }) => fragments.map(({ part }): [string, MediaPart] => [partKey(part), part])),
  );
  const fragments = [...parts.values()].filter(({ path }) => index.has(path));
  return { init, isInitMissing: !index.has(init.path), orders, present: { init, fragments } };
}
