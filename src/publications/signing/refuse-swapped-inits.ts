import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { describePart, type Publication, partKey } from '../publication.ts';
import { type StatedKind, statedKinds } from '../reading/stated-kinds.ts';
import type { InitLayout } from './init-layout.ts';

/** Handlers of pictures: moving ones, auxiliary ones such as transparency, and still ones. */
const HANDLERS: Readonly<Record<StatedKind['kind'], readonly string[]>> = {
  video: ['vide', 'auxv', 'pict'],
  audio: ['soun'],
};

/**
 * Refuses an init segment that is of another kind than a playlist says, as one that took the place of another: what plays
 * nowhere is not signed. An init segment of several tracks has to have one of the kind.
 */
export function refuseSwappedInits(
  folder: SourceFolder,
  { renditions, playlists }: Publication,
  inits: readonly InitLayout[],
): void {
  const kinds = statedKinds(folder, playlists);
  for (const [index, { init }] of renditions.entries()) {
    const handlers = inits[index]?.handlers ?? [];
    if (handlers.length === 0) continue;
    const wrong = kinds.get(partKey(init))?.find(({ kind }) => !handlers.some((each) => HANDLERS[kind].includes(each)));
    if (wrong !== undefined) throw new AppError('INIT_OF_OTHER_KIND', { ...wrong, init: describePart(init), handlers });
  }
}
