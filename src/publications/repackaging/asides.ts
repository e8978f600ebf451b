import type { PlaylistDocument } from '../publication.ts';
import type { MpdRepresentation } from '../reading/mpd-document.ts';
import { isPicture } from '../reading/path-patterns.ts';
import { childrenOf, type XmlElement } from '../reading/xml-element.ts';

/** What a publication may have beside the film, as nouns for people. */
export const PICTURES = 'pictures for the seek bar';
export const TRICK_PLAY = 'renditions for trick play';

/** DASH-IF IOP, part 5, and the same in HLS: what no player takes for a rendition of the film. */
const TRICK_MODE = 'http://dashif.org/guidelines/trickmode';

/** What playlists name beside the film, each once. */
export function asidesIn(playlists: readonly PlaylistDocument[]): string[] {
  const nouns = playlists.flatMap((playlist) => {
    if (playlist.kind === 'mpd')
      return playlist.representations.flatMap((representation) => asideOf(representation) ?? []);
    if (playlist.kind !== 'hls-media') return [];
    if (playlist.iFramesOnly) return [TRICK_PLAY];
    return holdsPictures(playlist.segments.map(({ uri }) => uri)) ? [PICTURES] : [];
  });
  return [...new Set(nouns)];
}

/** What a representation is beside the film; null where it is of the film itself. */
export function asideOf({ lineage }: MpdRepresentation): string | null {
  const [, , set, element] = lineage;
  if (mimeTypeOf(set, element).startsWith('image/')) return PICTURES;
  const properties = [...childrenOf(set, 'EssentialProperty'), ...childrenOf(element, 'EssentialProperty')];
  return properties.some(({ attributes }) => attributes.get('schemeIdUri') === TRICK_MODE) ? TRICK_PLAY : null;
}

export function mimeTypeOf(set: XmlElement, element: XmlElement): string {
  return element.attributes.get('mimeType') ?? set.attributes.get('mimeType') ?? '';
}

/** Whether segments are pictures, by their names. */
export function holdsPictures(uris: readonly string[]): boolean {
  return uris.length > 0 && uris.every(isPicture);
}
