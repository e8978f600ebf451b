import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { playlistsIn } from '../find-publication.ts';
import { type MediaPart, partKey, type Rendition } from '../media-part.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import { MAX_RENDITIONS, MAX_STATED_FRAGMENTS, refuseBeyond } from '../playlists/limits.ts';
import { readPlaylists, refusePartialSegments } from '../playlists/read-playlists.ts';
import { type RenditionStatement, type StatedFragment, statementsOf } from '../playlists/rendition-statements.ts';
import { checkRanges } from '../reading/merge-renditions.ts';
import { findUnboundMedia, type UnboundMedia } from './unbound-media.ts';

/** A rendition as playlists state it, whether its files are there or not. */
export interface StatedRendition {
  readonly init: MediaPart;
  readonly isInitMissing: boolean;
  /** One for each playlist that states another order or choice of fragments; the first is the longest. */
  readonly statements: readonly StatedOrder[];
  /** The fragments of all statements whose files are there, each once. */
  readonly present: Rendition;
}

/** The fragments of a rendition in the playback order of one playlist; each part once, where it is played first. */
export interface StatedOrder {
  readonly playlist: string;
  readonly fragments: readonly StatedFragment[];
}

/** The statements of the playlists of a folder. */
interface StatedPublication {
  readonly renditions: readonly StatedRendition[];
  readonly unbound: readonly UnboundMedia[];
}

/**
 * Reads what the playlists of a folder state, each for itself: one that was tampered with contradicts the others. Files that
 * are named and not there are kept. Throws `PUBLICATION_NOT_FOUND` where no playlist names fragments with an init segment, and
 * `PLAYLIST_UNSUPPORTED` for low-latency playlists.
 */
export async function readStatedPublication(folder: SourceFolder, signal: AbortSignal): Promise<StatedPublication> {
  const index = new FolderIndex(folder, 'keep');
  const entries = await playlistsIn(folder, index, null, signal);
  const playlists = await readPlaylists(folder, index, entries, signal);
  refusePartialSegments(playlists);
  const statements = statementsOf(playlists, index);
  checkRanges(presentOnly(statements, index), index);
  const groups = Map.groupBy(
    statements.filter(({ init }) => init !== null),
    ({ init }) => (init === null ? '' : partKey(init.part)),
  );
  if (groups.size === 0) throw new AppError('PUBLICATION_NOT_FOUND', { name: folder.name });
  refuseBeyond('init segments', groups.size, MAX_RENDITIONS);
  const stated = statements.reduce((sum, { fragments }) => sum + fragments.length, 0);
  refuseBeyond('fragments named in playlists', stated, MAX_STATED_FRAGMENTS);
  return {
    renditions: [...groups.values()].map((group) => renditionOf(group, index)),
    unbound: await findUnboundMedia(folder, playlists, statements, index, signal),
  };
}

function presentOnly(statements: readonly RenditionStatement[], index: FolderIndex): RenditionStatement[] {
  return statements.map((statement) => ({
    ...statement,
    init: statement.init !== null && index.has(statement.init.part.path) ? statement.init : null,
    fragments: statement.fragments.filter(({ part }) => index.has(part.path)),
  }));
}

function renditionOf(group: readonly RenditionStatement[], index: FolderIndex): StatedRendition {
  const init = group[0]?.init?.part as MediaPart;
  const orders = new Map<string, StatedOrder>();
  for (const { playlist, fragments } of group) {
    const once = [...Map.groupBy(fragments, ({ part }) => partKey(part)).values()].flatMap(([played]) => played ?? []);
    const key = once.map(({ part }) => partKey(part)).join('\n');
    if (!orders.has(key)) orders.set(key, { playlist, fragments: once });
  }
  const statements = [...orders.values()].sort((first, second) => second.fragments.length - first.fragments.length);
  const parts = new Map(
    statements.flatMap(({ fragments }) => fragments.map(({ part }): [string, MediaPart] => [partKey(part), part])),
  );
  const fragments = [...parts.values()].filter(({ path }) => index.has(path));
  return { init, isInitMissing: !index.has(init.path), statements, present: { init, fragments } };
}
