import type { ReadRendition } from '../checking/verify-parts.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { isPlayedByAll } from '../playlists/mpd-grammar.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import type { RenditionListing } from '../playlists/rendition-listings.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';

/** A choice that a playlist leaves to players: a variant with the groups that it names (HLS), or a period (DASH). */
export interface Choice {
  readonly playlist: string;
  readonly line: number;
  /** The init segments of what plays together. */
  readonly inits: readonly MediaPart[];
}

/** Returns the choices that playlists offer; a media playlist is one rendition, and offers none. */
export function choicesOf(
  playlists: readonly PlaylistDocument[],
  listings: readonly RenditionListing[],
  index: FolderIndex,
): Choice[] {
  const listingsOf = Map.groupBy(listings, ({ playlist }) => playlist);
  const initsOf = (path: string) => (listingsOf.get(path) ?? []).flatMap(({ init }) => init?.part ?? []);
  return playlists.flatMap((document): Choice[] => {
    const { path: playlist } = document;
    if (document.kind === 'hls-media') return [];
    if (document.kind === 'mpd') {
      return document.periods.map(({ element, line }) => {
        const played = document.representations.filter(
          ({ lineage }) => lineage[1] === element && isPlayedByAll(lineage),
        );
        return { playlist, line, inits: played.flatMap(({ init }) => init ?? []) };
      });
    }
    const base = index.baseOf(playlist);
    const references = document.references.map(({ uri, line, ...reference }) => {
      return { ...reference, line, inits: initsOf(index.locate(base, uri, { playlist, line })) };
    });
    const variants = references.filter(({ isVariant }) => isVariant);
    return variants.map(({ line, inits, soundGroup }) => {
      const group = references.filter(
        (each) => !each.isVariant && each.soundGroup !== null && each.soundGroup === soundGroup,
      );
      return { playlist, line, inits: [...inits, ...group.flatMap((each) => each.inits)] };
    });
  });
}

/** Finds the choices that offer pictures without the sound that is signed with them. */
export function findSilentChoices(
  choices: readonly Choice[],
  renditions: readonly { readonly listed: { readonly init: MediaPart }; readonly read: ReadRendition | null }[],
): FoundInPlaylist[] {
  const readOf = new Map(renditions.map(({ listed, read }) => [partKey(listed.init), read]));
  const withSound = new Set(renditions.flatMap(({ read }) => (read?.handlers.has('soun') ? [read.manifest] : [])));
  return choices.flatMap(({ playlist, line, inits }) => {
    const offered = inits.flatMap((init) => readOf.get(partKey(init)) ?? []);
    const has = (handler: string): boolean => offered.some(({ handlers }) => handlers.has(handler));
    const isSilent = has('vide') && !has('soun') && offered.some(({ manifest }) => withSound.has(manifest));
    const problem = 'it offers pictures without the sound that was signed with them';
    return isSilent ? [{ playlist, line, kind: 'missing', problem }] : [];
  });
}
