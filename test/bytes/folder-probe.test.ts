import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { FolderProbes } from '#bytes/folder-probe.ts';
import { Launcher } from '#processes/launcher.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('a probe of a folder', () => {
  test('has the same answer for all who ask at once', async () => {
    const probes = new FolderProbes(new Launcher({ variables: [] }));
    const folder = temporaryFolder();
    const uses = [folder, join(folder, 'none')].flatMap((path) =>
      [true, false].map((write) => ({ folder: path, write })),
    );
    const [first, second] = await Promise.all(
      [1, 2].map(() => Promise.all(uses.map((use) => probes.problemOf({ ...use, wasMounted: false })))),
    );
    assert.deepEqual(first, second);
    assert.deepEqual(first?.slice(0, 2), [null, null]);
  });
});
