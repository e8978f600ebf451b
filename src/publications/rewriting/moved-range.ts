import type { SourceFolder } from '#bytes/source-folder.ts';
import type { ByteRange } from '../publication.ts';
import { readFragmentLayout } from '../signing/fragment-layout.ts';
import { outputPositions } from '../signing/output-positions.ts';
import type { SignedPart, SignedParts } from '../signing/signed-part.ts';
import { readerOf } from '../signing/top-boxes.ts';
import type { MovedRange, MoveRange } from './rewrite-hls-media.ts';

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
    if (startOf(parts[middle] as SignedPart) <= offset) low = middle + 1;
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
