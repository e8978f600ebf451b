/**
 * Returns the first index from which on all items have a property, by binary search; the length of the list where none has
 * it. No item behind one with the property may be without it.
 */
export function partitionPoint<Item>(items: readonly Item[], has: (item: Item) => boolean): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (has(items[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
