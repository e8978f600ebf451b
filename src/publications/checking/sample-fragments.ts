/** Fragments of a rendition that the official reader is given, where it is not given all. */
export const MAX_SAMPLED_FRAGMENTS = 16;

/** Returns up to `count` items, at least two, at even distances: the first and the last are among them. */
export function sampleOf<Item>(items: readonly Item[], count = MAX_SAMPLED_FRAGMENTS): Item[] {
  if (items.length <= count) return [...items];
  const step = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, index) => items[Math.round(index * step)] as Item);
}
