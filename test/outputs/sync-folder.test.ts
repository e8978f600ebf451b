import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { syncFolder } from '#outputs/staging/sync-folder.ts';

test('whoever asks for a sync of a folder that is being synced shares the next one, not the one under way', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-sync-'));
  t.after(() => rm(folder, { recursive: true }));
  const [first, second, third] = [syncFolder(folder), syncFolder(folder), syncFolder(folder)];
  assert.notEqual(second, first, 'the first may have begun before the second name was there');
  assert.equal(third, second);
  await second;
  await first;
  assert.notEqual(syncFolder(folder), second, 'one that has ended is shared no more');
});

test('a sync that fails fails for those alone who share it', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'attestream-sync-'));
  t.after(() => rm(parent, { recursive: true }));
  const missing = join(parent, 'missing');
  const both = [syncFolder(missing), syncFolder(missing)];
  for (const sync of both) await assert.rejects(sync, { code: 'ENOENT' });
  await syncFolder(parent);
});
