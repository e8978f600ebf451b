import type { MediaPart } from '../publication.ts';

/** The fragments of a rendition in playback order; while it is still being made, as they become whole. */
export type FragmentSequence = Iterable<MediaPart> | AsyncIterable<MediaPart>;

/** A group has so many fragments as a rule: while the last ones of it are finished, nothing else is read. */
const USUAL_GROUP = 32;

/**
 * Fragments wait for their Merkle boxes until their group is done, and where an output is sent as it is written, they
 * wait in memory: so a group ends when its fragments come to so many bytes, and there are enough to work side by side.
 */
const LARGE_GROUP_BYTES = 24 * 1024 * 1024;
const SMALLEST_GROUP = 8;

/** Neighbouring fragments that are signed together: all leaves that the proofs of one are made of lie in its group. */
export async function* groupsOf(
  fragments: FragmentSequence,
  levels: number,
  sizeOf: (path: string) => number,
): AsyncGenerator<readonly MediaPart[]> {
  let group: MediaPart[] = [];
  let bytes = 0;
  let count = 0;
  for await (const fragment of fragments) {
    group.push(fragment);
    bytes += fragment.range?.length ?? sizeOf(fragment.path);
    count += 1;
    const isFull = group.length >= USUAL_GROUP || (bytes >= LARGE_GROUP_BYTES && group.length >= SMALLEST_GROUP);
    if (!isFull || count % 2 ** levels !== 0) continue;
    yield group;
    group = [];
    bytes = 0;
  }
  if (group.length > 0) yield group;
}
