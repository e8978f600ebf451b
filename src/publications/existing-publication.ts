import type { Warning } from '#errors/warning.ts';
import type { MediaPart } from './media-part.ts';
import type { MatchedPaths } from './path-patterns.ts';
import { isPicture } from './playlists/file-names.ts';
import type { MpdRepresentation, PlaylistDocument } from './playlists/playlist-document.ts';
import { hasInit, initsOfAdjacent, listingsOf } from './playlists/rendition-listings.ts';
import { childrenOf, type XmlElement } from './playlists/xml-element.ts';

/** A publication that packaging found in a folder; `Publication` is one that is to be signed. */
export interface ExistingPublication {
  readonly playlists: readonly PlaylistDocument[];
  readonly renditions: readonly ExistingRendition[];
  /** Renditions that the request's patterns do not choose. */
  readonly unchosen: readonly ExistingRendition[];
  /**
   * `cmaf`: every rendition has an init segment and fragments of one moof and one mdat, each a file: as it would be
   * packaged here. Else what its segments are, so that they have to be made anew.
   */
  readonly segments: SegmentKind;
  /** Files that are copied when it stays as it is, with warnings about files that are not. */
  readonly copied: { readonly paths: ReadonlySet<string>; readonly warnings: readonly Warning[] };
  /** Warnings about its playlists. */
  readonly warnings: readonly Warning[];
}

export type SegmentKind =
  | 'cmaf'
  | 'byte-ranges'
  | 'chunked'
  | 'transport-stream'
  | 'packed-audio'
  | 'webm'
  /** Fragmented MP4 of which every segment has the init segment in it. */
  | 'self-initialising';

/** One rendition of it, by one playlist. */
export interface ExistingRendition {
  /** A unique name for messages: the playlist, and for an MPD the representation's number. */
  readonly name: string;
  readonly playlist: string;
  /** The init segment first, where there is one; then the segments in playback order. */
  readonly parts: readonly MediaPart[];
  readonly hasInit: boolean;
  readonly isText: boolean;
  /** The duration of all segments as the playlist states it; null where it states none. */
  readonly durationSeconds: number | null;
  /** Attributes that the multivariant playlist or MPD states. */
  readonly language: string | null;
  readonly label: string | null;
  readonly role: string | null;
  /** True when players choose it by default. */
  readonly isDefault: boolean;
}

/** Names of auxiliary renditions in messages. */
export const PICTURES = 'pictures for the seek bar';
export const TRICK_PLAY = 'renditions for trick play';

/** Scheme of representations for trick play (DASH-IF IOP, part 5). */
const TRICK_MODE = 'http://dashif.org/guidelines/trickmode';

/** Returns the names of the kinds of auxiliary renditions in playlists, each once. */
export function auxiliaryRenditionsIn(playlists: readonly PlaylistDocument[]): string[] {
  const nouns = playlists.flatMap((playlist) => {
    if (playlist.kind === 'mpd')
      return playlist.representations.flatMap((representation) => auxiliaryKindOf(representation) ?? []);
    if (playlist.kind !== 'hls-media') return [];
    if (playlist.iFramesOnly) return [TRICK_PLAY];
    return holdsPictures(playlist.segments.map(({ uri }) => uri)) ? [PICTURES] : [];
  });
  return [...new Set(nouns)];
}

/** Returns the name of the kind of an auxiliary representation; null for a representation of the main content. */
export function auxiliaryKindOf({ lineage }: MpdRepresentation): string | null {
  const [, , set, element] = lineage;
  if (mimeTypeOf(set, element).startsWith('image/')) return PICTURES;
  const properties = [...childrenOf(set, 'EssentialProperty'), ...childrenOf(element, 'EssentialProperty')];
  return properties.some(({ attributes }) => attributes.get('schemeIdUri') === TRICK_MODE) ? TRICK_PLAY : null;
}

export function mimeTypeOf(set: XmlElement, element: XmlElement): string {
  return element.attributes.get('mimeType') ?? set.attributes.get('mimeType') ?? '';
}

/** Returns true when all segments are pictures, by their names. */
export function holdsPictures(uris: readonly string[]): boolean {
  return uris.length > 0 && uris.every(isPicture);
}

/**
 * Returns the paths of playlists, of everything that they name but pictures, and of the fragments beside those, which some players
 * play too.
 */
export function pathsInPlaylists(playlists: readonly PlaylistDocument[]): MatchedPaths {
  const listings = listingsOf(playlists);
  const fragments = listings.flatMap((listing) => listing.fragments.map(({ part }) => part.path));
  return {
    playlists: new Set(playlists.map(({ path }) => path)),
    inits: new Set(listings.filter(hasInit).map(({ init }) => init.part.path)),
    fragments: new Set([...fragments, ...initsOfAdjacent(playlists).keys()].filter((path) => !isPicture(path))),
  };
}
