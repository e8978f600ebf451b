import { setImmediate } from 'node:timers/promises';

/** Entries between two turns of the event loop; they take a few milliseconds. */
const YIELD_INTERVAL_ENTRIES = 200;

/**
 * Yields the entries of a list with their indexes, and lets the event loop turn in between: a list of 10,000 inputs is
 * legitimate, and must not hold up other requests.
 */
export async function* yieldingEntries<Entry>(
  entries: Iterable<Entry>,
): AsyncGenerator<readonly [index: number, entry: Entry], void, void> {
  let index = 0;
  for (const entry of entries) {
    if (index > 0 && index % YIELD_INTERVAL_ENTRIES === 0) await setImmediate();
    yield [index, entry];
    index += 1;
  }
}
