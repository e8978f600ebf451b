import { type MediaPart, partKey } from '../media-part.ts';
import { codecNamed } from '../verification/codecs.ts';
import type { FolderIndex } from './folder-index.ts';
import { attributeOf } from './hls-lines.ts';
import { partOf, referencesOf } from './hls-playlist.ts';
import { protectionOf, statedKinds } from './mpd-kinds.ts';
import type {
  HlsMedia,
  MediaWindow,
  MpdDocument,
  MpdRepresentation,
  PlaylistDocument,
  PlaylistReference,
} from './playlist-document.ts';

/** One rendition as one playlist lists it: the fragments that the playlist assigns to an init segment, in playback order. */
export interface RenditionListing {
  readonly playlist: string;
  /** Null where the playlist gives these fragments no init segment. */
  readonly init: ListedPart | null;
  readonly fragments: readonly ListedFragment[];
}

/** A fragment, and when it is played. */
export interface ListedFragment extends ListedPart {
  /** Seconds since the start of the programme; null where the playlist does not tell. */
  readonly startSeconds: number | null;
  /** Its duration as the playlist states it for this fragment alone; null where it does not. */
  readonly durationSeconds: number | null;
  /** Half of the last digit of that duration. */
  readonly roundingSeconds: number;
  /** The number of the last discontinuity above it in an HLS playlist, or of the period of an MPD. */
  readonly section: number;
  /** The time of day that the playlist states for it, in seconds; null where it does not, and in DASH. */
  readonly dateSeconds: number | null;
  /** The key that it is said to be encrypted with, as it is written (HLS), or the scheme of its protection (DASH); null where there is none. */
  readonly key: string | null;
  /** Its position among all that the playlist lists (HLS), or that its representation does in a period. */
  readonly position: number;
  /** Seconds without media between it and what is played before it. */
  readonly gapSeconds: number;
  /** Its start on the media timeline; null where the playlist does not tell. */
  readonly mediaSeconds: number | null;
  /** Its start in the period by the average duration of segments (`@duration`); null where another one is told. */
  readonly averageSeconds: number | null;
  /** The media times that players show of it; null where the playlist does not bound them. */
  readonly window: MediaWindow | null;
}

/** A part and the line, counted from one, that names it. */
export interface ListedPart {
  readonly part: MediaPart;
  readonly line: number;
}

/** A listing of fragments with an init segment. */
export type InitListing = RenditionListing & { readonly init: ListedPart };

export function hasInit(listing: RenditionListing): listing is InitListing {
  return listing.init !== null;
}

/** Returns the parts of a listing, its init segment first. */
export function listedParts({ init, fragments }: RenditionListing): readonly ListedPart[] {
  return init === null ? fragments : [init, ...fragments];
}

/** Returns the init segment of each file that templates name beside their segments, by path. */
export function initsOfAdjacent(playlists: readonly PlaylistDocument[]): ReadonlyMap<string, string> {
  return new Map(
    representationsIn(playlists).flatMap(({ init, adjacent }) =>
      init === null ? [] : adjacent.map(({ path }): [string, string] => [path, init.path]),
    ),
  );
}

/**
 * Returns the listings of all playlists, one per playlist and init segment. I-frame playlists come last, and count for
 * nothing where they name parts of fragments, as they mostly do.
 */
export function listingsOf(playlists: readonly PlaylistDocument[]): RenditionListing[] {
  const listings = playlists.flatMap((playlist) => {
    if (playlist.kind === 'mpd') return joinByInit(listingsOfMpd(playlist));
    return playlist.kind === 'hls-media' && !playlist.iFramesOnly ? joinByInit(listingsOfHls(playlist)) : [];
  });
  const named = new Set(listings.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)));
  const keyFrames = playlists.filter(isOfKeyFrames).flatMap((playlist) => {
    const own = iFrameListingsOf([playlist]);
    return own.filter(({ fragments }) => {
      const parts = fragments.map(({ part }) => part);
      return !parts.some(({ path }) => named.has(path)) && areWholeFragments(parts, playlist.index);
    });
  });
  return [...listings, ...keyFrames];
}

/** Returns the listings of I-frame playlists, also those that name parts of fragments. */
export function iFrameListingsOf(playlists: readonly PlaylistDocument[]): RenditionListing[] {
  return playlists.filter(isOfKeyFrames).flatMap((playlist) => joinByInit(listingsOfHls(playlist)));
}

function isOfKeyFrames(playlist: PlaylistDocument): playlist is HlsMedia {
  return playlist.kind === 'hls-media' && playlist.iFramesOnly;
}

/** Returns the files of an HLS playlist that are there, and that it has players pass over (EXT-X-GAP). */
export function gapsOf(playlist: PlaylistDocument): string[] {
  if (playlist.kind !== 'hls-media') return [];
  const { index, base, path, gaps } = playlist;
  return gaps.flatMap(({ uri, line }) => index.tryLocate(base, uri, { playlist: path, line }) ?? []);
}

/** Returns the representations of all MPDs among playlists. */
export function representationsIn(playlists: readonly PlaylistDocument[]): MpdRepresentation[] {
  return playlists.flatMap((playlist) => (playlist.kind === 'mpd' ? playlist.representations : []));
}

/** Returns the files without segments that MPDs name, with no init segment. */
export function wholeFilesOf(playlists: readonly PlaylistDocument[]): RenditionListing[] {
  return representationsIn(playlists).flatMap(({ addressing, path, playlist, line }) => {
    if (addressing !== 'none' || path === undefined) return [];
    return { playlist, init: null, fragments: [{ part: { path, range: null }, line, ...UNTIMED }] };
  });
}

const UNTIMED = {
  startSeconds: null,
  durationSeconds: null,
  roundingSeconds: 0,
  section: 0,
  dateSeconds: null,
  key: null,
  position: 0,
  gapSeconds: 0,
  mediaSeconds: null,
  averageSeconds: null,
  window: null,
} as const;

/** Returns a listing for each EXT-X-MAP tag, which may change midway. */
function listingsOfHls(playlist: HlsMedia): RenditionListing[] {
  return [...Map.groupBy(playlist.segments, ({ map }) => map)].map(([map, segments]) => ({
    playlist: playlist.path,
    init: map === null ? null : { part: partOf(playlist, map), line: map.line },
    fragments: segments.map((segment) => {
      const { uri: _, range: __, rangeLine: ___, map: ____, ...times } = segment;
      return { ...UNTIMED, ...times, part: partOf(playlist, segment) };
    }),
  }));
}

/** Returns a listing for each representation and period. */
function listingsOfMpd({ path, periods, representations }: MpdDocument): RenditionListing[] {
  const addressed = representations.filter(({ addressing }) => addressing !== 'none');
  let periodStart: number | null = 0;
  const listings: RenditionListing[] = [];
  for (const [period, inPeriod] of Map.groupBy(addressed, ({ lineage }) => lineage[1])) {
    const section = periods.findIndex(({ element }) => element === period);
    const ends = inPeriod.map((representation) => {
      const { init, line } = representation;
      const { fragments, endSeconds } = timedFragments(representation, section, periodStart);
      listings.push({ playlist: path, init: init === null ? null : { part: init, line }, fragments });
      return endSeconds;
    });
    periodStart = ends.reduce(
      (latest, end) => (latest === null || end === null ? null : Math.max(latest, end)),
      periodStart,
    );
  }
  return listings;
}

/** Returns the segments of a representation with the times at which they start, and the end of the last one. */
function timedFragments(
  { segments, line, window, isTimed, lineage }: MpdRepresentation,
  section: number,
  periodStart: number | null,
): { fragments: ListedFragment[]; endSeconds: number | null } {
  let endSeconds = periodStart;
  const [key = null] = protectionOf(lineage);
  const fragments = segments.map(({ part, mediaSeconds, durationSeconds: length }, position) => {
    const startSeconds = endSeconds;
    endSeconds = endSeconds === null || length === null ? null : endSeconds + length;
    const durationSeconds = isTimed ? length : null;
    const averageSeconds = isTimed || length === null ? null : position * length;
    const times = { startSeconds, durationSeconds, mediaSeconds, averageSeconds };
    return { ...UNTIMED, ...times, key, part, line, section, position, window };
  });
  return { fragments, endSeconds };
}

/** Joins listings of one playlist with the same init segment: what it comes back to later is played later. */
function joinByInit(listings: readonly RenditionListing[]): RenditionListing[] {
  const groups = Map.groupBy(listings, (listing) => (listing.init === null ? listing : partKey(listing.init.part)));
  return [...groups.values()].map((group) => {
    const [first] = group as [RenditionListing];
    return group.length === 1 ? first : { ...first, fragments: group.flatMap(({ fragments }) => fragments) };
  });
}

/**
 * Returns true when the segments of an I-frame playlist are fragments, and not frames inside some: mostly they are byte
 * ranges that end with the frame, and what follows in the file belongs to the fragment.
 */
export function areWholeFragments(parts: readonly MediaPart[], index: FolderIndex): boolean {
  for (const [path, inFile] of Map.groupBy(parts, ({ path }) => path)) {
    const ranges = inFile.flatMap(({ range }) => range ?? []).sort((first, second) => first.offset - second.offset);
    const [first] = ranges;
    if (first === undefined) continue;
    let end = first.offset;
    for (const { offset, length } of ranges) {
      if (offset !== end) return false;
      end += length;
    }
    if (end !== index.sizeOf(path)) return false;
  }
  return true;
}

/** The kind of media that a playlist says an init segment is for, and the line that says it. */
export interface DeclaredKind {
  readonly kind: 'video' | 'audio';
  readonly playlist: string;
  readonly line: number;
}

/** Returns the kinds that playlists declare for their init segments, by `partKey`; no entry where they declare none. */
export function declaredKinds(
  playlists: readonly PlaylistDocument[],
): Map<string, (DeclaredKind & { readonly init: MediaPart })[]> {
  const ofReferences = playlists.flatMap((playlist) =>
    referencesOf(playlist).flatMap((reference): [string, DeclaredKind][] => {
      const kind = kindOf(reference);
      const line = reference.tag?.line ?? 1;
      return kind === null ? [] : [[reference.path, { kind, playlist: playlist.path, line }]];
    }),
  );
  const ofPlaylists = new Map(ofReferences);
  const ofHls = listingsOf(playlists).flatMap(({ playlist, init }) => {
    const declared = ofPlaylists.get(playlist);
    return init === null || declared === undefined ? [] : [{ init: init.part, ...declared }];
  });
  const ofMpds = representationsIn(playlists).flatMap(({ init, playlist, line, lineage }) => {
    const kinds = [...statedKinds(lineage)].filter((kind) => kind === 'video' || kind === 'audio');
    return init === null ? [] : kinds.map((kind) => ({ init, kind, playlist, line }));
  });
  return Map.groupBy([...ofHls, ...ofMpds], ({ init }) => partKey(init));
}

/**
 * Returns the kind that a multivariant playlist declares for a media playlist. A variant has the pictures itself, unless they are in a
 * group of their own; its codecs include those of its groups.
 */
function kindOf({ tag, isVariant }: PlaylistReference): DeclaredKind['kind'] | null {
  if (tag === null) return null;
  const type = attributeOf(tag, 'TYPE');
  if (!isVariant) return type === 'AUDIO' ? 'audio' : type === 'VIDEO' ? 'video' : null;
  if (attributeOf(tag, 'VIDEO') !== undefined) return null;
  const codecs = attributeOf(tag, 'CODECS')?.split(',');
  const kinds = codecs?.map((codec) => codecNamed(codec).kind);
  if (attributeOf(tag, 'RESOLUTION') !== undefined || kinds?.includes('video')) return 'video';
  return kinds?.includes('audio') ? 'audio' : null;
}
