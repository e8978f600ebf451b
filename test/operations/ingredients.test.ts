import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import { givenIngredient } from '#operations/ingredients.ts';

test('a parent that is not there is told from an input that is not: by where it stands in the request', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-parents-'));
  t.after(() => rm(folder, { recursive: true }));
  const scratch = new ScratchSpace({ dir: folder, dataDir: folder }, { jobId: 'job', inputIndex: 1, attempt: 1 });
  const inputs = new InputResolver({ local_file_path: localFileOpener({ roots: undefined, protectedPaths: [] }) });
  const parent = { type: 'file', source: { type: 'local_file_path', path: join(folder, 'nowhere.mp4') } } as const;
  for (const [params, field] of [
    [{ parent }, 'params.parent.source'],
    [
      { parent_overrides: [{ input_index: 0 }, { input_index: 1, parent }] },
      'params.parent_overrides[1].parent.source',
    ],
  ] as const) {
    const overridden = { ...params, parent_overrides: [...(params.parent_overrides ?? [])] };
    const opening = givenIngredient(overridden, 1, inputs, { signal: new AbortController().signal, scratch });
    await assert.rejects(opening, (error: { reason: string; location: { field?: string } }) => {
      assert.deepEqual([error.reason, error.location.field], ['SOURCE_NOT_FOUND', field]);
      return true;
    });
  }
});
