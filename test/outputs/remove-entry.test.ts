import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FolderHandle } from '#outputs/local/folder-handle.ts';
import { removeEntry } from '#outputs/local/staged-entries.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('what a lost attempt left may be removed by several nodes at once', async () => {
  const place = temporaryFolder();
  for (let round = 0; round < 20; round += 1) {
    mkdirSync(join(place, 'left/inner'), { recursive: true });
    for (const name of ['a', 'inner/b']) writeFileSync(join(place, 'left', name), '');
    const nodes = Array.from({ length: 4 }, () => FolderHandle.follow(place));
    await Promise.all(nodes.map((node) => removeEntry(node, 'left')));
    for (const node of nodes) await node.close();
    assert.ok(!existsSync(join(place, 'left')));
  }
});
