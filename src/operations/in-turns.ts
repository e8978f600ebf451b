import { setImmediate } from 'node:timers/promises';

/** So many entries are looked at in one go; it takes a few milliseconds. */
const ENTRIES_AT_ONCE = 200;

/** The entries of a list with their indexes, and pauses in which other work goes on: 10,000 inputs are legitimate. */
export async function* inTurns<Entry>(
  entries: Iterable<Entry>,
): AsyncGenerator<readonly [index: number, entry: Entry], void, void> {
  let index = 0;
  for (const entry of entries) {
    if (index > 0 && index % ENTRIES_AT_ONCE === 0) await setImmediate();
    yield [index, entry];
    index += 1;
  }
}
