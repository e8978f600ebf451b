import type { SourceFolder } from '#bytes/source-folder.ts';
import type { MediaPart } from '../publication.ts';

/** A group has so many fragments as a rule: while the last ones of it are finished, nothing else is read. */
const USUAL_GROUP = 32;

/**
 * Fragments wait for their Merkle boxes until their group is done, and where an output is sent as it is written, they
 * wait in memory: so a group ends when its fragments come to so many bytes, and there are enough to work side by side.
 */
const LARGE_GROUP_BYTES = 24 * 1024 * 1024;
const SMALLEST_GROUP = 8;

/** Neighbouring fragments that are signed together: all leaves that the proofs of one are made of lie in its group. */
export function* groupsOf(
  fragments: readonly MediaPart[],
  levels: number,
  { files }: SourceFolder,
): Generator<readonly MediaPart[]> {
  const sizes = new Map(files.map(({ path, sizeBytes }) => [path, sizeBytes]));
  let group: MediaPart[] = [];
  let bytes = 0;
  for (const [index, fragment] of fragments.entries()) {
    group.push(fragment);
    bytes += fragment.range?.length ?? sizes.get(fragment.path) ?? 0;
    const isFull = group.length >= USUAL_GROUP || (bytes >= LARGE_GROUP_BYTES && group.length >= SMALLEST_GROUP);
    if (!isFull || (index + 1) % 2 ** levels !== 0) continue;
    yield group;
    group = [];
    bytes = 0;
  }
  if (group.length > 0) yield group;
}
