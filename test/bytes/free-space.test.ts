import assert from 'node:assert/strict';
import type { statfs } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { FreeSpace } from '#bytes/free-space.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('the free space of folders', () => {
  test('is that of their file systems, and not known of a folder that is not there', async () => {
    const folder = temporaryFolder();
    const space = new FreeSpace({ outputs: folder, scratch: `${folder}/gone` });
    await space.look();
    const { outputs, scratch } = space.now();
    assert.ok(outputs != null && outputs.freeBytes > 0 && outputs.freeBytes <= outputs.sizeBytes);
    assert.equal(scratch, null);
  });

  test('is asked for once at a time where the file system hangs, and holds nobody up', () => {
    const asked: unknown[] = [];
    const hang = ((path: string) => {
      asked.push(path);
      return new Promise(() => undefined);
    }) as unknown as typeof statfs;
    const space = new FreeSpace({ outputs: '/dead' }, hang);
    void space.look();
    void space.look();
    assert.deepEqual([asked, space.now()], [['/dead'], { outputs: null }]);
  });
});
