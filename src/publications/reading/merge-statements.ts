import { AppError } from '#errors/app-error.ts';
import { describePart, type MediaPart, partKey } from '../publication.ts';
import { RENDITIONS_MAX_COUNT, refuseBeyond, STATED_FRAGMENTS_MAX_COUNT } from './publication-limits.ts';
import type { RenditionStatement, StatedPart } from './rendition-statement.ts';

/** A rendition while statements are merged into it. */
export interface MergedRendition {
  readonly init: MediaPart;
  /** Playback order. */
  fragments: MediaPart[];
  /** Their positions by `partKey`, kept while they do not change: a thousand playlists may name one fragment each. */
  positions?: ReadonlyMap<string, number>;
  /** The playlist that spoke first, for errors; null where none did. */
  readonly playlist: string | null;
}

/**
 * Merges what all playlists say into renditions: the same files named by several playlists, HLS and DASH alike, are one.
 * Playlists that contradict each other are refused.
 */
export function mergeStatements(statements: readonly (RenditionStatement & { init: StatedPart })[]): MergedRendition[] {
  const renditions = new Map<string, MergedRendition>();
  const owners = new Map<string, MergedRendition>();
  let stated = 0;
  for (const statement of statements) {
    stated += statement.fragments.length;
    refuseBeyond('fragments named in playlists', stated, STATED_FRAGMENTS_MAX_COUNT);
    const { part } = statement.init;
    const rendition = renditions.get(partKey(part)) ?? { init: part, fragments: [], playlist: statement.playlist };
    renditions.set(partKey(part), rendition);
    refuseBeyond('init segments', renditions.size, RENDITIONS_MAX_COUNT);
    refuseStrangers(statement, rendition, owners);
    mergeOrders(rendition, statement);
  }
  refuseInitsAmongFragments(statements, renditions);
  return [...renditions.values()];
}

function refuseStrangers(
  statement: RenditionStatement,
  rendition: MergedRendition,
  owners: Map<string, MergedRendition>,
): void {
  for (const { part, line } of statement.fragments) {
    const key = partKey(part);
    const owner = owners.get(key);
    if (owner !== undefined && owner !== rendition) {
      throw new AppError('FRAGMENT_IN_TWO_RENDITIONS', {
        playlist: statement.playlist,
        line,
        fragment: describePart(part),
        init: describePart(rendition.init),
        otherInit: describePart(owner.init),
      });
    }
    owners.set(key, rendition);
  }
}

/**
 * Merges a playlist's order into the one known so far. Fragments that both know must stand in the same order in both;
 * new ones go in directly behind their predecessor, or before their successor. A fragment that is played twice counts
 * where it comes first.
 */
function mergeOrders(rendition: MergedRendition, statement: RenditionStatement): void {
  const { fragments, playlist } = rendition;
  const known = rendition.positions ?? new Map(fragments.map((part, position) => [partKey(part), position]));
  rendition.positions = known;
  const first = statement.fragments
    .map(({ part }) => known.get(partKey(part)))
    .find((position) => position !== undefined);
  let last = (first ?? fragments.length) - 1;
  const insertions = new Map<number, MediaPart[]>();
  const seen = new Set<string>();
  for (const { part, line } of statement.fragments) {
    const key = partKey(part);
    if (seen.has(key)) continue;
    seen.add(key);
    const position = known.get(key);
    if (position === undefined) {
      const behind = insertions.get(last) ?? [];
      behind.push(part);
      insertions.set(last, behind);
    } else if (position > last) {
      last = position;
    } else {
      const place = { playlist: statement.playlist, line };
      throw new AppError('FRAGMENT_ORDER_CONFLICT', {
        ...place,
        fragment: describePart(part),
        otherPlaylist: playlist ?? '',
      });
    }
  }
  if (insertions.size === 0) return;
  delete rendition.positions;
  rendition.fragments = [
    ...(insertions.get(-1) ?? []),
    ...fragments.flatMap((part, position) => [part, ...(insertions.get(position) ?? [])]),
  ];
}

function refuseInitsAmongFragments(
  statements: readonly RenditionStatement[],
  renditions: ReadonlyMap<string, MergedRendition>,
): void {
  for (const { playlist, fragments } of statements) {
    const culprit = fragments.find(({ part }) => renditions.has(partKey(part)));
    if (culprit === undefined) continue;
    throw new AppError('FRAGMENT_IS_INIT', { playlist, line: culprit.line, name: describePart(culprit.part) });
  }
}
