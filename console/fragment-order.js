import { keyOf } from './playlists.js';
import { failed } from './reader.js';
import { verifySequence } from './shared/verify-sequence.js';

/**
 * @typedef {import('./playlists.js').Fragment} Fragment
 * @typedef {import('./reader.js').Reading} Reading
 */

/** The code that the service gives media that match the binding, and stand elsewhere. */
export const MISPLACED = 'com.attestream.publication.mismatch';

/**
 * Verifies that fragments follow each other as they were signed, by the positions in their Merkle boxes, and calls the others
 * invalid. Looks at those that are verified, under the Merkle map of one of them: what lies between may still be to come, and
 * playlists may begin late.
 * @param {readonly Fragment[]} fragments of a rendition
 * @param {Fragment} one
 */
export function verifyOrder(fragments, { init, bound: own }) {
  if (own === null || init === null) return;
  const mapKey = `${own.uniqueId} ${own.localId} ${keyOf(init)}`;
  const bound = fragments.filter(
    (each) =>
      each.bound !== null &&
      each.init !== null &&
      `${each.bound.uniqueId} ${each.bound.localId} ${keyOf(each.init)}` === mapKey,
  );
  // A playlist may name a fragment twice, which is no disorder of the files.
  const named = [...Map.groupBy(bound, ({ part }) => keyOf(part)).values()];
  const map = { count: Number.POSITIVE_INFINITY };
  const found = named.map(([first]) => ({ map, location: first?.bound?.location, isBound: true }));
  for (const [index, { kind }] of verifySequence(found, map).entries()) {
    for (const fragment of named[index] ?? []) {
      fragment.reading = kind === 'intact' ? fragment.alone : misplaced(fragment);
    }
  }
}

/**
 * Returns the reading of an intact fragment that does not play where it was signed.
 * @param {Fragment} fragment
 * @returns {Reading | null}
 */
function misplaced({ alone, bound }) {
  if (alone === null) return null;
  return failed(alone, MISPLACED, `It is not played where it was signed, as fragment ${bound?.location}.`);
}
