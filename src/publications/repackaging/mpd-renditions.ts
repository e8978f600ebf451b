import type { MediaPart, PlaylistDocument } from '../publication.ts';
import type { MpdRepresentation } from '../reading/mpd-document.ts';
import { childrenOf } from '../reading/xml-element.ts';
import { asideOf, mimeTypeOf } from './asides.ts';
import type { ExistingRendition } from './existing-publication.ts';

/** A rendition for every representation of every period. */
export function renditionsOfMpd(playlists: readonly PlaylistDocument[]): ExistingRendition[] {
  return playlists.flatMap((playlist) => {
    if (playlist.kind !== 'mpd') return [];
    return playlist.representations
      .filter((representation) => asideOf(representation) === null && partsOf(representation).length > 0)
      .map((representation, number) => renditionOf(playlist.path, representation, number));
  });
}

/** Its segments; subtitles may be one file without any. */
function partsOf({ addressing, segments, path, lineage: [, , set, element] }: MpdRepresentation): MediaPart[] {
  if (addressing !== 'none') return segments.map(({ part }) => part);
  return path !== undefined && isTextFile(mimeTypeOf(set, element)) ? [{ path, range: null }] : [];
}

/** Subtitles that are no fragments. */
function isTextFile(mimeType: string): boolean {
  return mimeType.startsWith('text/') || mimeType === 'application/ttml+xml';
}

function renditionOf(playlist: string, representation: MpdRepresentation, number: number): ExistingRendition {
  const { init, segments, lineage } = representation;
  const parts = partsOf(representation);
  const [, , set, element] = lineage;
  const durations = segments.map(({ durationSeconds }) => durationSeconds);
  const role = childrenOf(set, 'Role')[0]?.attributes.get('value') ?? null;
  return {
    name: `${playlist}#${number}`,
    playlist,
    parts: [...(init === null ? [] : [init]), ...parts],
    hasInit: init !== null,
    isText: init === null && isTextFile(mimeTypeOf(set, element)),
    durationSeconds: durations.includes(null)
      ? null
      : durations.reduce<number>((sum, seconds) => sum + (seconds ?? 0), 0),
    language: set.attributes.get('lang') ?? null,
    label: childrenOf(set, 'Label')[0]?.text ?? null,
    role,
    isDefault: role === 'main' && set.attributes.get('contentType') === 'audio',
  };
}
