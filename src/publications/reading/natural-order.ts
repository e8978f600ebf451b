const collator = new Intl.Collator('en', { numeric: true });

/** Orders paths as people count: `seg_2` before `seg_10`. Equal only for equal paths. */
export function compareNaturally(first: string, second: string): number {
  return collator.compare(first, second) || (first < second ? -1 : first > second ? 1 : 0);
}
