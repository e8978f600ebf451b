import { AppError } from '#errors/app-error.ts';
import { type ByteRange, describePart, type MediaPart, partKey } from '../media-part.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { MAX_LISTED_FRAGMENTS, MAX_RENDITIONS, refuseBeyond } from '../playlists/limits.ts';
import {
  type InitListing,
  type ListedPart,
  listedParts,
  type RenditionListing,
} from '../playlists/rendition-listings.ts';

/** A rendition while listings are merged into it. */
export interface MergedRendition {
  readonly init: MediaPart;
  /** Playback order. */
  fragments: MediaPart[];
  /** Their positions by `partKey`, kept while they do not change: a thousand playlists may name one fragment each. */
  positions?: ReadonlyMap<string, number>;
  /** The playlist that spoke first, for errors; null where none did. */
  readonly playlist: string | null;
}

/**
 * Merges what all playlists say into renditions: the same files named by several playlists, HLS and DASH alike, are one.
 * Playlists that contradict each other are refused.
 */
export function mergeListings(listings: readonly InitListing[]): MergedRendition[] {
  const renditions = new Map<string, MergedRendition>();
  const owners = new Map<string, MergedRendition>();
  let fragmentCount = 0;
  for (const listing of listings) {
    fragmentCount += listing.fragments.length;
    refuseBeyond('fragments named in playlists', fragmentCount, MAX_LISTED_FRAGMENTS);
    const { part } = listing.init;
    const rendition = renditions.get(partKey(part)) ?? { init: part, fragments: [], playlist: listing.playlist };
    renditions.set(partKey(part), rendition);
    refuseBeyond('init segments', renditions.size, MAX_RENDITIONS);
    rejectForeignFragments(listing, rendition, owners);
    mergeOrders(rendition, listing);
  }
  refuseInitsAmongFragments(listings, renditions);
  return [...renditions.values()];
}

function rejectForeignFragments(
  listing: RenditionListing,
  rendition: MergedRendition,
  owners: Map<string, MergedRendition>,
): void {
  for (const { part, line } of listing.fragments) {
    const key = partKey(part);
    const owner = owners.get(key);
    if (owner !== undefined && owner !== rendition) {
      throw new AppError('FRAGMENT_IN_TWO_RENDITIONS', {
        playlist: listing.playlist,
        line,
        fragment: describePart(part),
        init: describePart(rendition.init),
        otherInit: describePart(owner.init),
      });
    }
    owners.set(key, rendition);
  }
}

/**
 * Merges a playlist's order into the one known so far. Fragments that both know must stand in the same order in both;
 * new ones go in directly behind their predecessor, or before their successor. A fragment that is played twice counts
 * where it comes first.
 */
function mergeOrders(rendition: MergedRendition, listing: RenditionListing): void {
  const { fragments, playlist } = rendition;
  const known = rendition.positions ?? new Map(fragments.map((part, position) => [partKey(part), position]));
  rendition.positions = known;
  const first = listing.fragments
    .map(({ part }) => known.get(partKey(part)))
    .find((position) => position !== undefined);
  let last = (first ?? fragments.length) - 1;
  const insertions = new Map<number, MediaPart[]>();
  const seen = new Set<string>();
  for (const { part, line } of listing.fragments) {
    const key = partKey(part);
    if (seen.has(key)) continue;
    seen.add(key);
    const position = known.get(key);
    if (position === undefined) {
      const behind = insertions.get(last) ?? [];
      behind.push(part);
      insertions.set(last, behind);
    } else if (position > last) {
      last = position;
    } else {
      const details = { playlist: listing.playlist, line, fragment: describePart(part), otherPlaylist: playlist ?? '' };
      throw new AppError('FRAGMENT_ORDER_CONFLICT', details);
    }
  }
  if (insertions.size === 0) return;
  delete rendition.positions;
  rendition.fragments = [
    ...(insertions.get(-1) ?? []),
    ...fragments.flatMap((part, position) => [part, ...(insertions.get(position) ?? [])]),
  ];
}

function refuseInitsAmongFragments(
  listings: readonly RenditionListing[],
  renditions: ReadonlyMap<string, MergedRendition>,
): void {
  for (const { playlist, fragments } of listings) {
    const culprit = fragments.find(({ part }) => renditions.has(partKey(part)));
    if (culprit === undefined) continue;
    throw new AppError('FRAGMENT_IS_INIT', { playlist, line: culprit.line, name: describePart(culprit.part) });
  }
}

/** A byte range as a playlist lists it. */
interface ListedRange extends ListedPart {
  readonly playlist: string;
  readonly range: ByteRange;
}

/** Refuses byte ranges that pass the end of their file, and parts of one file that overlap without being the same. */
export function checkRanges(listings: readonly RenditionListing[], index: FolderIndex): void {
  const ranged: ListedRange[] = [];
  for (const listing of listings) {
    for (const { part, line } of listedParts(listing)) {
      if (part.range !== null) ranged.push({ part, line, playlist: listing.playlist, range: part.range });
    }
  }
  if (ranged.length === 0) return;
  for (const [file, parts] of Map.groupBy(ranged, ({ part }) => part.path)) {
    refusePastEnd(file, parts, index.sizeOf(file) as number);
    refuseOverlap(file, parts);
  }
  refuseWholeAndParts(listings, new Set(ranged.map(({ part }) => part.path)));
}

function refusePastEnd(file: string, parts: readonly ListedRange[], sizeBytes: number): void {
  for (const { range, playlist, line } of parts) {
    const end = range.offset + range.length;
    if (end > sizeBytes) throw new AppError('BYTE_RANGE_PAST_END', { playlist, line, file, end, sizeBytes });
  }
}

function refuseOverlap(file: string, parts: readonly ListedRange[]): void {
  const distinct = [...new Map(parts.map((listed) => [partKey(listed.part), listed])).values()];
  let end = 0;
  for (const { range, playlist, line } of distinct.sort((a, b) => a.range.offset - b.range.offset)) {
    const { offset, length } = range;
    if (offset < end) throw new AppError('FRAGMENT_RANGES_OVERLAP', { playlist, line, file, offset });
    end = offset + length;
  }
}

function refuseWholeAndParts(listings: readonly RenditionListing[], ranged: ReadonlySet<string>): void {
  for (const listing of listings) {
    const whole = listedParts(listing).find(({ part }) => part.range === null && ranged.has(part.path));
    if (whole === undefined) continue;
    const { part, line } = whole;
    throw new AppError('FRAGMENT_RANGES_OVERLAP', { playlist: listing.playlist, line, file: part.path, offset: 0 });
  }
}
