import { setImmediate } from 'node:timers/promises';

/**
 * Runs a task for every item, at most `limit` at once, and returns the results in the order of the items. After the first
 * error, or when the signal is aborted, nothing more is started. The first error, or the signal's reason, is thrown when all
 * running tasks have settled, so that a caller may then release what they use; `p-map` throws at once and lets them go on.
 */
export async function mapConcurrent<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  // One iterator, which all workers take their next item from.
  const entries = items.entries();
  let failure: { readonly error: unknown } | undefined;
  const work = async (): Promise<void> => {
    while (failure === undefined) {
      const next = entries.next();
      if (next.done) return;
      const [index, item] = next.value;
      try {
        signal?.throwIfAborted();
        results[index] = await task(item, index);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  if (failure !== undefined) throw failure.error;
  return results;
}

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
