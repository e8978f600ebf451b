import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PlaylistDocument } from '../publication.ts';
import { FolderIndex } from './folder-index.ts';
import { type ClaimedPaths, isPicture } from './path-patterns.ts';
import { statementsOf } from './rendition-statement.ts';

/** Claims everything that playlists name but pictures, and the playlists themselves. */
export function claimStated(folder: SourceFolder, playlists: readonly PlaylistDocument[]): ClaimedPaths {
  const stated = statementsOf(playlists, new FolderIndex(folder));
  return {
    playlists: new Set(playlists.map(({ path }) => path)),
    inits: new Set(stated.flatMap(({ init }) => (init === null ? [] : [init.part.path]))),
    fragments: new Set(
      stated.flatMap(({ fragments }) => fragments.map(({ part }) => part.path)).filter((path) => !isPicture(path)),
    ),
  };
}
