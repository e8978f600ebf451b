import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GrowingList } from '#publications/growing-publication.ts';

async function itemsOf<Item>(list: GrowingList<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of list) items.push(item);
  return items;
}

describe('a list that grows', () => {
  test('gives what it has, then what comes, in order, and ends', async () => {
    const list = new GrowingList<number>();
    list.push(1, 2);
    const read: number[] = [];
    for await (const item of list) {
      read.push(item);
      if (item === 2) setImmediate(() => list.push(3));
      if (item === 3) setImmediate(() => list.end());
    }
    assert.deepEqual(read, [1, 2, 3]);
    assert.deepEqual(list.items, read);
  });

  test('gives every reader everything', async () => {
    const list = new GrowingList<string>();
    const readers = [0, 1].map(() => itemsOf(list));
    list.push('a');
    list.end();
    assert.deepEqual(await Promise.all(readers), [['a'], ['a']]);
    assert.deepEqual(await itemsOf(list), ['a']);
  });
});
