import { partKey } from '../media-part.ts';
import type { RenditionReading } from './judge-renditions.ts';
import type { Entry } from './listed-renditions.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';

/** Finds the entries that offer pictures without the sound that is signed with them. */
export function findSilentEntries(
  entries: readonly Entry[],
  renditions: readonly Pick<RenditionReading, 'listed' | 'read'>[],
): FoundInPlaylist[] {
  const readOf = new Map(renditions.map(({ listed, read }) => [partKey(listed.init), read]));
  return entries.flatMap(({ path, reaches, inits }) => {
    const reached = inits.flatMap((init) => readOf.get(partKey(init)) ?? []);
    const has = (handler: string): boolean => reached.some(({ handlers }) => handlers.has(handler));
    const manifests = new Set(reached.map(({ manifest }) => manifest));
    const isSilent = (reaches.size > 1 || path.endsWith('.mpd')) && has('vide') && !has('soun');
    const hasSound = renditions.some(({ read }) => read?.handlers.has('soun') && manifests.has(read.manifest));
    const problem = 'it offers pictures without the sound that was signed with them';
    return isSilent && hasSound ? [{ playlist: path, line: 1, kind: 'missing', problem }] : [];
  });
}
