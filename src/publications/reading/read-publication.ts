import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { distinctWarnings, type Warning, warning } from '#errors/warning.ts';
import {
  describePart,
  type MediaPart,
  type PlaylistDocument,
  type Publication,
  type PublicationPatterns,
} from '../publication.ts';
import { chooseCarried, isHidden } from './carried-files.ts';
import { FolderIndex } from './folder-index.ts';
import { type MergedRendition, mergeStatements } from './merge-statements.ts';
import { checkRanges } from './part-ranges.ts';
import { type ClaimedPaths, claimPaths, isPlainText, needsPackaging } from './path-patterns.ts';
import { readBystanders } from './read-bystanders.ts';
import { readPlaylists } from './read-playlists.ts';
import { refuseUnsignable } from './refuse-unsignable.ts';
import { type RenditionStatement, type StatedPart, statementsOf } from './rendition-statement.ts';
import { addUnlistedFiles } from './unlisted-files.ts';

/**
 * Finds out what of a folder is signed: which fragments belong to which init segment, and in which order. Playlists
 * decide; where none speaks, folders, names and natural order do. A rendition is signed as soon as a pattern claims its
 * init segment or one of its fragments, and then whole: a fragment left out would be an invalid one.
 */
export async function readPublication(
  folder: SourceFolder,
  patterns: PublicationPatterns,
  signal: AbortSignal,
): Promise<Publication> {
  const claimed = claimPaths(
    folder.files.map(({ path }) => path),
    patterns,
  );
  return await readClaimedPublication(folder, claimed, signal);
}

/** The same, where what the patterns would claim is known already. */
export async function readClaimedPublication(
  folder: SourceFolder,
  claimed: ClaimedPaths,
  signal: AbortSignal,
): Promise<Publication> {
  const index = new FolderIndex(folder);
  const playlists = await readPlaylists(folder, index, claimed.playlists, signal);
  refuseUnsignable(playlists);
  const stated = statementsOf(playlists, index);
  checkRanges(stated, index);
  const { signed, warnings } = signedStatements(stated, claimed);
  const named = new Set([...pathsOfPlaylists(playlists), ...stated.flatMap(pathsOf)]);

  const listed = mergeStatements(signed);
  const renditions = await addUnlistedFiles(listed, folder, claimed, named, signal);
  for (const { init, fragments } of renditions) {
    if (fragments.length === 0) throw new AppError('INIT_WITHOUT_FRAGMENTS', { init: describePart(init) });
  }
  const others = without(index.paths, [...pathsOfPlaylists(playlists), ...renditions.flatMap(pathsOfRendition)]);
  const signedParts = renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
  const shown = others.filter((path) => !isHidden(path));
  const bystanders = await readBystanders(folder, index, shown, signedParts, signal);
  const carried = chooseCarried(folder.files, index, {
    candidates: without(others, pathsOfPlaylists(bystanders.playlists)),
    members: new Set([...pathsOfPlaylists(playlists), ...signedParts.map(({ path }) => path)]),
    playlists: [...playlists, ...bystanders.playlists],
  });
  return {
    renditions: renditions.map(({ init, fragments }) => ({ init, fragments })),
    playlists: [...playlists, ...bystanders.playlists],
    otherPaths: carried.paths,
    warnings: [...warnings, ...index.warnings, ...bystanders.warnings, ...carried.warnings],
  };
}

function pathsOfPlaylists(playlists: readonly PlaylistDocument[]): string[] {
  return playlists.map(({ path }) => path);
}

function without(paths: Iterable<string>, excluded: readonly string[]): string[] {
  const left = new Set(excluded);
  return [...paths].filter((path) => !left.has(path));
}

interface SignedStatements {
  readonly signed: readonly (RenditionStatement & { init: StatedPart })[];
  readonly warnings: readonly Warning[];
}

/** The statements about renditions that a pattern claims; whichever of them cannot be signed is an error. */
function signedStatements(stated: readonly RenditionStatement[], claimed: ClaimedPaths): SignedStatements {
  const signed: (RenditionStatement & { init: StatedPart })[] = [];
  const warnings: Warning[] = [];
  for (const statement of stated) {
    const { init, fragments } = statement;
    const isClaimed =
      (init !== null && claimed.inits.has(init.part.path)) ||
      fragments.some(({ part }) => claimed.fragments.has(part.path));
    if (!isClaimed) continue;
    if (init !== null) signed.push({ ...statement, init });
    else warnings.push(warningOfUnsigned(statement));
  }
  return { signed, warnings: distinctWarnings(warnings) };
}

/** Fragments without an init segment: plain text is carried through with a warning, anything else is refused. */
function warningOfUnsigned({ playlist, fragments }: RenditionStatement): Warning {
  for (const { part } of fragments) {
    if (needsPackaging(part.path)) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: part.path });
    if (!isPlainText(part.path)) throw new AppError('FRAGMENT_WITHOUT_INIT', { fragment: part.path, candidates: [] });
  }
  return warning('TEXT_SEGMENTS_UNSIGNED', { playlist });
}

function pathsOf({ init, fragments }: RenditionStatement): string[] {
  return [...(init === null ? [] : [init.part.path]), ...fragments.map(({ part }) => part.path)];
}

function pathsOfRendition({ init, fragments }: MergedRendition): string[] {
  return [init, ...fragments].map(({ path }: MediaPart) => path);
}
