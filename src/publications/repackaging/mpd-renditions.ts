import type { PlaylistDocument } from '../publication.ts';
import type { MpdRepresentation } from '../reading/mpd-document.ts';
import { childrenOf } from '../reading/xml-element.ts';
import type { ExistingRendition } from './existing-publication.ts';

/** A rendition for every representation of every period. */
export function renditionsOfMpd(playlists: readonly PlaylistDocument[]): ExistingRendition[] {
  return playlists.flatMap((playlist) => {
    if (playlist.kind !== 'mpd') return [];
    return playlist.representations
      .filter(({ addressing, segments }) => addressing !== 'none' && segments.length > 0)
      .map((representation, number) => renditionOf(playlist.path, representation, number));
  });
}

function renditionOf(playlist: string, representation: MpdRepresentation, number: number): ExistingRendition {
  const { init, segments, lineage } = representation;
  const [, , set, element] = lineage;
  const durations = segments.map(({ durationSeconds }) => durationSeconds);
  const role = childrenOf(set, 'Role')[0]?.attributes.get('value') ?? null;
  const mimeType = element.attributes.get('mimeType') ?? set.attributes.get('mimeType') ?? '';
  return {
    name: `${playlist}#${number}`,
    playlist,
    parts: [...(init === null ? [] : [init]), ...segments.map(({ part }) => part)],
    hasInit: init !== null,
    isText: mimeType.startsWith('text/'),
    durationSeconds: durations.includes(null)
      ? null
      : durations.reduce<number>((sum, seconds) => sum + (seconds ?? 0), 0),
    language: set.attributes.get('lang') ?? null,
    label: childrenOf(set, 'Label')[0]?.text ?? null,
    role,
    isDefault: role === 'main' && set.attributes.get('contentType') === 'audio',
  };
}
