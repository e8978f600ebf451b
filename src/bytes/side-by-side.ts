/**
 * Does a task for every item, at most `limit` at once, and returns the results in the order of the items. After the
 * first failure nothing more is started; it is thrown when what runs has ended.
 */
export async function sideBySide<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const takeTurns = async (): Promise<void> => {
    while (failure === undefined && next < items.length) {
      const index = next++;
      try {
        results[index] = await task(items[index] as Item, index);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, takeTurns));
  if (failure !== undefined) throw failure.error;
  return results;
}
