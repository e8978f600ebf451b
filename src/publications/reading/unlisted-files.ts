import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type MediaPart, partKey } from '../publication.ts';
import { InitsByName } from './init-by-name.ts';
import type { MergedRendition } from './merge-statements.ts';
import { compareNaturally } from './natural-order.ts';
import { type ClaimedPaths, isPlainText, needsPackaging } from './path-patterns.ts';
import { RENDITIONS_MAX_COUNT, refuseBeyond } from './publication-limits.ts';
import { startsWithInit } from './segment-kind.ts';

/**
 * Adds the files that patterns claim and no playlist names: each fragment to the init segment that its folder and name
 * point to, in natural order.
 */
export async function addUnlistedFiles(
  listed: readonly MergedRendition[],
  folder: SourceFolder,
  claimed: ClaimedPaths,
  named: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<MergedRendition[]> {
  const { inits, fragments } = await sortUnlisted(folder, claimed, named, signal);
  const renditions = [...listed, ...inits.map(unlistedRendition)];
  // A fragment that is a file of its own cannot belong to an init segment that is part of a larger file.
  const byInit = new Map(renditions.filter(({ init }) => init.range === null).map((each) => [each.init.path, each]));
  refuseBeyond('init segments', renditions.length, RENDITIONS_MAX_COUNT);
  const names = new InitsByName([...byInit.keys()]);
  for (const [initPath, paths] of Map.groupBy(fragments, (fragment) => names.initOf(fragment))) {
    const rendition = byInit.get(initPath) as MergedRendition;
    rendition.fragments = withUnlisted(rendition.fragments, paths);
  }
  return renditions;
}

function unlistedRendition(path: string): MergedRendition {
  return { init: { path, range: null }, fragments: [], playlist: null };
}

async function sortUnlisted(
  folder: SourceFolder,
  claimed: ClaimedPaths,
  named: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ inits: string[]; fragments: string[] }> {
  const inits: string[] = [];
  const fragments: string[] = [];
  for (const path of new Set([...claimed.inits, ...claimed.fragments])) {
    if (named.has(path) || isPlainText(path)) continue;
    if (needsPackaging(path)) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: path });
    const isBoth = claimed.inits.has(path) && claimed.fragments.has(path);
    const isInit = isBoth ? await startsWithInit(folder, path, signal) : claimed.inits.has(path);
    (isInit ? inits : fragments).push(path);
  }
  return { inits, fragments };
}

/**
 * The natural order of all fragments where it agrees with the playlist's, so that what a live window has left behind
 * comes before it; else the playlist's order, and the others after it.
 */
function withUnlisted(listed: readonly MediaPart[], paths: readonly string[]): MediaPart[] {
  const unlisted = paths.toSorted(compareNaturally).map((path) => ({ path, range: null }));
  const natural = [...listed, ...unlisted].sort((first, second) => compareNaturally(first.path, second.path));
  const listedKeys = new Set(listed.map(partKey));
  const listedNaturally = natural.filter((part) => listedKeys.has(partKey(part)));
  return listedNaturally.every((part, position) => part === listed[position]) ? natural : [...listed, ...unlisted];
}
