import type { SourceFolder } from '#bytes/source-folder.ts';
import { itemAt } from '#errors/assert.ts';
import { outputPositions, readFragmentLayout } from '../fragments/fragment-layout.ts';
import type { SignedPart, SignedParts } from '../fragments/signed-part.ts';
import { readerOf } from '../fragments/top-boxes.ts';
import { type ByteRange, partKey } from '../media-part.ts';
import { FolderIndex } from '../playlists/folder-index.ts';
import type { HlsMedia } from '../playlists/playlist-document.ts';
import type { Publication } from '../publication.ts';
import { type AddedRates, addedRates, type GrownSegment, NOTHING_ADDED } from './added-rates.ts';
import { type MovedRange, type MoveRange, rewriteHlsMedia, rewriteHlsMultivariant } from './rewrite-hls.ts';
import { rewriteMpd } from './rewrite-mpd.ts';

/**
 * Rewrites the publication's playlists for its signed parts: declared bandwidths rise by what was added, and byte ranges
 * that became files are named as files. Returns the whole text by path of those that change; nothing else in them does.
 */
export async function rewritePlaylists(
  { playlists }: Publication,
  folder: SourceFolder,
  parts: SignedParts,
  signal: AbortSignal,
): Promise<Map<string, string>> {
  const index = new FolderIndex(folder);
  const moveRange = rangeMover(folder, parts, signal);
  const rewritten = new Map<string, string>();
  const rates = new Map<string, AddedRates>();
  for (const playlist of playlists) {
    if (playlist.kind !== 'hls-media') continue;
    rates.set(playlist.path, addedRates(await grownSegments(playlist, index, parts, moveRange)));
    rewritten.set(playlist.path, await rewriteHlsMedia(playlist, index, parts, moveRange));
  }
  for (const playlist of playlists) {
    if (playlist.kind === 'mpd') rewritten.set(playlist.path, rewriteMpd(playlist, index, parts));
    if (playlist.kind !== 'hls-multivariant') continue;
    rewritten.set(
      playlist.path,
      rewriteHlsMultivariant(playlist, index, (path) => rates.get(path) ?? NOTHING_ADDED),
    );
  }
  for (const { path, text } of playlists) if (rewritten.get(path) === text) rewritten.delete(path);
  return rewritten;
}

async function grownSegments(
  { path: playlist, segments }: HlsMedia,
  index: FolderIndex,
  parts: SignedParts,
  moveRange: MoveRange,
): Promise<GrownSegment[]> {
  const base = index.baseOf(playlist);
  const grown: GrownSegment[] = [];
  for (const { uri, line, range, durationSeconds } of segments) {
    const path = index.locate(base, uri, { playlist, line });
    const part = parts.get(partKey(index.partAt(path, range)));
    const moved = part === undefined && range !== null ? await moveRange(path, range) : undefined;
    const movedBytes = moved === undefined || range === null ? 0 : moved.length - range.length;
    grown.push({ durationSeconds, addedBytes: part?.addedBytes ?? movedBytes });
  }
  return grown;
}

/**
 * Moves byte ranges inside fragments, as I-frame playlists name them, to where they lie in the output. A range that
 * begins with the moof begins with it still: the Merkle box before it is not played.
 */
export function rangeMover(folder: SourceFolder, parts: SignedParts, signal: AbortSignal): MoveRange {
  const byFile = Map.groupBy(
    [...parts.values()].filter(({ merkleBoxSizeBytes }) => merkleBoxSizeBytes > 0),
    ({ source }) => source.path,
  );
  for (const inFile of byFile.values()) inFile.sort((first, second) => startOf(first) - startOf(second));
  return async (path, range) => {
    const part = lastUpTo(byFile.get(path) ?? [], range.offset);
    return part === undefined || !holds(part, range) ? undefined : await moveInside(folder, part, range, signal);
  };
}

function startOf({ source }: SignedPart): number {
  return source.range?.offset ?? 0;
}

function holds({ source }: SignedPart, { offset, length }: ByteRange): boolean {
  return source.range === null || offset + length <= source.range.offset + source.range.length;
}

/** The last of the parts, sorted by their start, that does not start after `offset`. */
function lastUpTo(parts: readonly SignedPart[], offset: number): SignedPart | undefined {
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (startOf(itemAt(parts, middle)) <= offset) low = middle + 1;
    else high = middle;
  }
  return parts[low - 1];
}

async function moveInside(
  folder: SourceFolder,
  { source: part, path, merkleBoxSizeBytes }: SignedPart,
  { offset, length }: ByteRange,
  signal: AbortSignal,
): Promise<MovedRange> {
  const source = await folder.open(part.path, signal);
  try {
    const layout = await readFragmentLayout(await readerOf(source, part, signal));
    const positions = outputPositions(layout, merkleBoxSizeBytes);
    const start = offset === layout.moof.offset ? positions.ofBox(layout.moof) : positions.ofBoundary(offset);
    return { path, offset: start, length: positions.ofBoundary(offset + length) - start };
  } finally {
    await source.close();
  }
}
