import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { unlessRefused } from '#errors/app-error.ts';
import { listTopBoxes, readerOf } from '../fragments/top-boxes.ts';
import { type ByteRange, rangeOf } from '../media-part.ts';
import { MAX_SIDX_BOXES } from '../playlists/limits.ts';
import type { MpdRepresentation, PlaylistDocument } from '../playlists/playlist-document.ts';
import { ambiguous } from '../playlists/playlist-finding.ts';
import { representationsIn } from '../playlists/rendition-listings.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';

/** Files that are read at once. */
const MAX_CONCURRENT_FILES = 4;
/** Boxes in which no player finds media. */
const WITHOUT_MEDIA: ReadonlySet<string> = new Set(['sidx', 'ssix', 'free', 'skip', 'mfra']);

/**
 * Finds files with a segment index that hold more than their init segment and what the index names: some players (ffmpeg) read such a
 * file as a whole, and play the rest too.
 */
export async function findUnlistedBoxes(
  folder: Pick<SourceFolder, 'open'>,
  playlists: readonly PlaylistDocument[],
  signal: AbortSignal,
): Promise<FoundInPlaylist[]> {
  const found = await mapConcurrent(representationsIn(playlists), MAX_CONCURRENT_FILES, async (representation) => {
    const { playlist, line, addressing, segments } = representation;
    const path = addressing === 'base' ? segments[0]?.part.path : undefined;
    if (path === undefined || !(await holdsMore(folder, path, representation, signal))) return [];
    const problem = `"${path}" holds other boxes beside what its index names, and some players play them`;
    return [{ ...ambiguous(playlist, problem, line), isOfFolder: true }];
  });
  return found.flat();
}

function holdsMore(
  folder: Pick<SourceFolder, 'open'>,
  path: string,
  { init, segments }: MpdRepresentation,
  signal: AbortSignal,
): Promise<boolean> {
  return withSource(folder, { path }, signal, async (source) => {
    const parts = [...(init?.path === path ? [init] : []), ...segments.map(({ part }) => part)];
    const listed = parts.map((part) => rangeOf(part, source));
    for (const range of rangesBeside(listed, source.sizeBytes)) {
      const reader = await readerOf(source, { path, range }, signal);
      const boxes = await unlessRefused(listTopBoxes(reader, MAX_SIDX_BOXES), ({ reason }) =>
        /^(?:FRAGMENT|BMFF)_/.test(reason),
      );
      if (boxes?.every(({ type }) => WITHOUT_MEDIA.has(type)) !== true) return true;
    }
    return false;
  });
}

/** Returns the ranges of a file that lie in none of the given ones. */
function* rangesBeside(ranges: readonly ByteRange[], sizeBytes: number): Generator<ByteRange> {
  let end = 0;
  const sorted = ranges.toSorted((first, second) => first.offset - second.offset);
  for (const { offset, length } of [...sorted, { offset: sizeBytes, length: 0 }]) {
    if (offset > end) yield { offset: end, length: offset - end };
    end = Math.max(end, offset + length);
  }
}
