import { folderOf } from '#bytes/path-overlap.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { AppError, unlessRefused } from '#errors/app-error.ts';
import { valueAt } from '#errors/assert.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import type { MatchedPaths } from '../path-patterns.ts';
import { compareNaturally, isPlainText, needsPackaging } from '../playlists/file-names.ts';
import type { FolderIndex } from '../playlists/folder-index.ts';
import { MAX_RENDITIONS, MAX_UNLISTED_PLAYLIST_READS, refuseBeyond } from '../playlists/limits.ts';
import type { PlaylistDocument } from '../playlists/playlist-document.ts';
import { readPlaylists, refuseUnsignable } from '../playlists/read-playlists.ts';
import { iFrameListingsOf, listedParts, listingsOf } from '../playlists/rendition-listings.ts';
import { findTopBox } from '../playlists/sidx.ts';
import { isPresented } from '../presentation/presentation.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import type { MergedRendition } from './merge-renditions.ts';

/** Paths that playlists name. */
export interface NamedPaths {
  readonly named: ReadonlySet<string>;
  /** The init segments of files beside the segments of templates, by path. */
  readonly adjacent: ReadonlyMap<string, string>;
}

/**
 * Adds the files that patterns claim and no playlist names: each fragment to the init segment of the template that it lies
 * beside, else to the one that its folder and name point to, in natural order.
 */
export async function addUnlistedFiles(
  listed: readonly MergedRendition[],
  folder: SourceFolder,
  matched: MatchedPaths,
  { named, adjacent }: NamedPaths,
  signal: AbortSignal,
): Promise<MergedRendition[]> {
  const { inits, fragments } = await sortUnlisted(folder, matched, named, signal);
  const unlisted = inits.map(
    (path): MergedRendition => ({ init: { path, range: null }, fragments: [], playlist: null }),
  );
  const renditions = [...listed, ...unlisted];
  // A fragment that is a file of its own cannot belong to an init segment that is part of a larger file.
  const byInit = new Map(renditions.filter(({ init }) => init.range === null).map((each) => [each.init.path, each]));
  refuseBeyond('init segments', renditions.length, MAX_RENDITIONS);
  const initByName = initsByName([...byInit.keys()]);
  const initOf = (fragment: string): string => {
    const init = adjacent.get(fragment);
    return init !== undefined && byInit.has(init) ? init : initByName(fragment);
  };
  for (const [initPath, paths] of Map.groupBy(fragments, initOf)) {
    const rendition = valueAt(byInit, initPath);
    rendition.fragments = withUnlisted(rendition.fragments, paths);
  }
  return renditions;
}

async function sortUnlisted(
  folder: SourceFolder,
  matched: MatchedPaths,
  named: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ inits: string[]; fragments: string[] }> {
  const inits: string[] = [];
  const fragments: string[] = [];
  for (const path of new Set([...matched.inits, ...matched.fragments])) {
    if (named.has(path) || isPlainText(path)) continue;
    if (needsPackaging(path)) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: path });
    const isBoth = matched.inits.has(path) && matched.fragments.has(path);
    const isInit = isBoth ? await startsWithInit(folder, path, signal) : matched.inits.has(path);
    (isInit ? inits : fragments).push(path);
  }
  return { inits, fragments };
}

/**
 * Returns the natural order of all fragments where it agrees with the playlist's, so that what a live window has left
 * behind comes before it; else the playlist's order, and the others after it.
 */
function withUnlisted(listed: readonly MediaPart[], paths: readonly string[]): MediaPart[] {
  const unlisted = paths.toSorted(compareNaturally).map((path) => ({ path, range: null }));
  const natural = [...listed, ...unlisted].sort((first, second) => compareNaturally(first.path, second.path));
  const listedKeys = new Set(listed.map(partKey));
  const listedNaturally = natural.filter((part) => listedKeys.has(partKey(part)));
  return listedNaturally.every((part, position) => part === listed[position]) ? natural : [...listed, ...unlisted];
}

/** Words that say "init segment" and nothing about which rendition it is of. */
const GENERIC_WORDS = new Set(['init', 'initialization', 'header', 'head', 'ini']);

/** An init segment by its path, with the words of its name that tell renditions apart. */
interface NamedInit {
  readonly path: string;
  readonly words: readonly string[];
}

/**
 * Returns a function that finds the init segments of fragments that no playlist speaks of: among the init segments of the nearest folder
 * (its own, else the next one up that has any, else all), the one whose name shares the most with the fragment's.
 */
function initsByName(paths: readonly string[]): (fragment: string) => string {
  const all = paths.map((path) => ({ path, words: wordsOf(path).filter((word) => !GENERIC_WORDS.has(word)) }));
  const byFolder = Map.groupBy(all, ({ path }) => folderOf(path));
  /** Results by folder and words: fragments of one rendition differ in their number only. */
  const known = new Map<string, string>();

  const nearest = (fragment: string): readonly NamedInit[] => {
    for (let folder = folderOf(fragment); ; folder = folderOf(folder)) {
      const here = byFolder.get(folder);
      if (here !== undefined) return here;
      if (folder === '') return all;
    }
  };
  const best = (fragment: string, words: readonly string[]): string => {
    const candidates = nearest(fragment);
    const [only, second] = candidates;
    if (only !== undefined && second === undefined) return only.path;
    const scored = candidates
      .map((init) => ({ init, score: sharedWords(init.words, words) }))
      .filter(({ score }) => score >= 0);
    const highest = scored.reduce((most, { score }) => Math.max(most, score), -1);
    const [winner, other] = scored.filter(({ score }) => score === highest);
    if (winner !== undefined && other === undefined) return winner.init.path;
    const shown = candidates.slice(0, 10).map(({ path }) => path);
    throw new AppError('FRAGMENT_WITHOUT_INIT', { fragment, candidates: shown });
  };
  return (fragment) => {
    const words = wordsOf(fragment);
    // The last number counts the fragments; it says nothing about the rendition.
    const lastNumber = words.findLastIndex((word) => /^\d+$/.test(word));
    if (lastNumber !== -1) words.splice(lastNumber, 1);
    const key = [folderOf(fragment), ...words].join('\0');
    const init = known.get(key) ?? best(fragment, words);
    known.set(key, init);
    return init;
  };
}

/** Counts the words of an init segment that the fragment has too, in order; -1 where it lacks one of them. */
function sharedWords(ofInit: readonly string[], ofFragment: readonly string[]): number {
  let from = 0;
  for (const word of ofInit) {
    const at = ofFragment.indexOf(word, from);
    if (at === -1) return -1;
    from = at + 1;
  }
  return ofInit.length;
}

/** Runs of letters and runs of digits of a file name without its extension, in lower case. */
function wordsOf(path: string): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.[^.]*$/, '');
  return name.toLowerCase().match(/\p{L}+|\d+/gu) ?? [];
}

/** Returns true when a file's first moov or moof is a moov: it is an init segment whatever its name. */
async function startsWithInit(folder: SourceFolder, path: string, signal: AbortSignal): Promise<boolean> {
  const found = await withSource(folder, { path }, signal, (source) => findTopBox(source, ['moov', 'moof'], signal));
  return found?.type === 'moov';
}

/**
 * Finds the playlists that are rewritten as well though no pattern matches them and no matched playlist names them, so that
 * the signed media that they name play too. They do not decide what is signed, and one that cannot be parsed is copied like
 * any other file. The warnings are about those that cannot be kept true.
 */
export async function readUnlistedPlaylists(
  folder: PublicationFolder,
  index: FolderIndex,
  paths: readonly string[],
  signed: readonly MediaPart[],
  signal: AbortSignal,
): Promise<{ playlists: PlaylistDocument[]; warnings: Warning[] }> {
  const signedPaths = new Set(signed.map(({ path }) => path));
  const signedKeys = new Set(signed.map(partKey));
  const rangedPaths = new Set(signed.filter(({ range }) => range !== null).map(({ path }) => path));
  const unmatched = new Set(paths);
  const playlists = new Map<string, PlaylistDocument>();
  const warnings: Warning[] = [];
  const known = new Map<string, Promise<PlaylistDocument>>();
  let reads = 0;
  /** Reads a playlist and those that it names. */
  const read = async (path: string) => {
    const documents = await readPlaylists(folder, index, [path], signal, known);
    refuseUnsignable(documents);
    // I-frame playlists name parts of fragments, which move with these.
    const frames = iFrameListingsOf(documents).flatMap(listedParts);
    return { documents, frames, parts: listingsOf(documents).flatMap(listedParts) };
  };
  for (const path of paths.filter(isPresented)) {
    // No pattern matches it: a malformed one is copied like any other file.
    const found = await unlessRefused(read(path), () => !signal.aborted);
    if (found === null) continue;
    const { documents, frames, parts } = found;
    reads += documents.length;
    refuseBeyond('playlists that no pattern matches', reads, MAX_UNLISTED_PLAYLIST_READS);
    if (![...parts, ...frames].some(({ part }) => signedPaths.has(part.path))) continue;
    for (const document of documents) if (unmatched.has(document.path)) playlists.set(document.path, document);
    const stale = parts.find(({ part }) => rangedPaths.has(part.path) && !signedKeys.has(partKey(part)));
    if (stale === undefined) continue;
    warnings.push(warning('PLAYLIST_BROKEN_BY_SIGNING', { playlist: path, file: stale.part.path }));
  }
  return { playlists: [...playlists.values()], warnings };
}
