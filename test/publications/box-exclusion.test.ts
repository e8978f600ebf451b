import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readBoxExclusion } from '#publications/checking/stored-binding.ts';

test('an exclusion that looks at a place of every box a million times is not taken', () => {
  const data = [{ offset: 8, value: new Uint8Array(4) }];
  assert.deepEqual(readBoxExclusion({ xpath: '/free', data })?.data, data);
  const million = new Array<unknown>(1_000_000).fill({ offset: 0, value: new Uint8Array(0) });
  assert.equal(readBoxExclusion({ xpath: '/free', data: million }), undefined);
});
