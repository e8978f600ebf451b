import assert from 'node:assert/strict';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FolderProbes } from '#bytes/folder-probe.ts';
import { Launcher, type LaunchOptions } from '#processes/launcher.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Counts processes, and has them answer with the number of times that each was asked. */
class CountingLauncher extends Launcher {
  processes = 0;

  override launch(_entry: URL, options: LaunchOptions) {
    this.processes += 1;
    return super.launch(new URL('./counting-probe.ts', import.meta.url), options);
  }
}

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

  test('writes into a file that has lost its name, so that none is left where its process is killed', async (t) => {
    const folder = temporaryFolder();
    const events: string[] = [];
    const watcher = watch(folder, (event) => events.push(event));
    t.after(() => watcher.close());
    const probes = new FolderProbes(new Launcher({ variables: [] }));
    assert.equal(await probes.problemOf({ folder, write: true, wasMounted: false }), null);
    await until(() => events.length >= 2);
    assert.deepEqual(events.slice(0, 2), ['rename', 'rename'], 'it appears, and is deleted before anything is written');
  });

  test('takes one process, however often it is asked for', async () => {
    const launcher = new CountingLauncher();
    const probes = new FolderProbes(launcher);
    const answers: (string | null)[] = [];
    for (let times = 0; times < 20; times += 1)
      answers.push(await probes.problemOf({ folder: '/', write: false, wasMounted: false }));
    assert.deepEqual([answers.at(-1), launcher.processes], ['20', 1]);
  });

  test('begins after it was asked for, and is shared by all who ask before it begins', async () => {
    const probes = new FolderProbes(new CountingLauncher());
    const use = { folder: '/', write: false, wasMounted: false };
    const first = probes.problemOf(use);
    await setImmediate();
    const later = Array.from({ length: 100 }, () => probes.problemOf(use));
    assert.deepEqual([await first, ...new Set(await Promise.all(later))], ['1', '2']);
  });
});
