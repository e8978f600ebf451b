import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { OutputPathRegistries, OutputPathRegistry } from '#jobs/scheduling/output-path-registry.ts';
import { StoreWrites } from '#jobs/scheduling/store-writes.ts';
import type { LeasedInput } from '#jobs/store/job-store.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

function registryOf(inputs: readonly string[], params: unknown = null, outputs: readonly string[] = []) {
  return OutputPathRegistry.of({
    inputs: inputs.map((path) => ({ type: 'local_file_path', path })),
    params,
    outputs: outputs.map((outputPath, inputIndex) => ({ inputIndex, outputPath })),
    retried: [],
  });
}

describe('the output path registry', () => {
  test('a destination is granted once, and again to the same input', async () => {
    const registry = await registryOf(['/in/a', '/in/b']);
    assert.equal(await registry.reserve('/out/x.mp4', 0), undefined);
    assert.equal(await registry.reserve('/out/x.mp4', 0), undefined);
    assert.equal((await registry.reserve('/out/x.mp4', 1))?.reason, 'OUTPUT_TAKEN');
    assert.equal(await registry.reserve('/out/y.mp4', 1), undefined);
  });

  test('of claims at the same moment one is granted', async () => {
    const registry = await registryOf([]);
    const answers = await Promise.all([0, 1, 2, 3].map((input) => registry.reserve('/out/x', input)));
    assert.equal(answers.filter((answer) => answer === undefined).length, 1);
  });

  test("a place inside or above another input's destination is taken", async () => {
    const registry = await registryOf([]);
    await registry.reserve('/out/folder', 0);
    assert.equal((await registry.reserve('/out/folder/x', 1))?.reason, 'OUTPUT_TAKEN');
    assert.equal((await registry.reserve('/out', 1))?.reason, 'OUTPUT_TAKEN');
    assert.equal(await registry.reserve('/out/folder2', 1), undefined);
  });

  test('a retry leaves the sources and outputs of the job that it retries alone', async () => {
    const job = {
      params: null,
      inputs: ['/in/a.wav', '/in/b.wav'].map((path) => ({ type: 'local_file_path' as const, path })),
    };
    const earlier = { ...job, outputs: [{ inputIndex: 0, outputPath: '/out/a_c2pa.wav' }] };
    const registry = await OutputPathRegistry.of({
      ...job,
      inputs: job.inputs.slice(1),
      outputs: [],
      retried: [earlier],
    });
    assert.equal((await registry.reserve('/out/a_c2pa.wav', 0))?.reason, 'OUTPUT_TAKEN');
    assert.equal((await registry.reserve('/in/a.wav', 0))?.reason, 'OUTPUT_TOUCHES_SOURCE');
    assert.equal(await registry.reserve('/out/b_c2pa.wav', 0), undefined);
  });

  test('a destination that is, holds or lies inside an input is refused', async () => {
    const registry = await registryOf(['/media/in/a.mp4', '/media/folder']);
    for (const path of ['/media/in/a.mp4', '/media/in', '/', '/media/folder/x.mp4', '/media/in/../in/./a.mp4']) {
      assert.equal((await registry.reserve(path, 1))?.reason, 'OUTPUT_TOUCHES_SOURCE', path);
    }
    assert.equal(await registry.reserve('/media/in/a.mp4x', 1), undefined);
  });

  test('a destination in S3 that is, holds or lies inside an input from S3 is refused, however its key is written', async () => {
    const registry = await OutputPathRegistry.of({
      inputs: [
        { type: 'remote_file_url', url: 's3://bucket/in/a.mp4' },
        { type: 'remote_folder_url', url: 's3://bucket/a%20folder/' },
        { type: 'remote_folder_url', url: 's3://whole' },
        { type: 'remote_file_url', url: 'https://example.com/in/b.mp4' },
      ],
      params: null,
      outputs: [{ inputIndex: 3, outputPath: 's3://bucket/out/b.mp4' }],
      retried: [],
    });
    for (const path of ['in/a.mp4', 'in', 'a folder/x', 'a%20folder'].map((key) => `s3://bucket/${key}`)) {
      assert.equal((await registry.reserve(path, 1))?.reason, 'OUTPUT_TOUCHES_SOURCE', path);
    }
    assert.equal((await registry.reserve('s3://whole/x', 1))?.reason, 'OUTPUT_TOUCHES_SOURCE');
    assert.equal((await registry.reserve('s3://bucket/out/b.mp4', 1))?.reason, 'OUTPUT_TAKEN');
    assert.equal(await registry.reserve('s3://bucket/in/b.mp4', 1), undefined);
    assert.equal(await registry.reserve('s3://other/in/a.mp4', 1), undefined);
  });

  test('the file of a parent, and of an override, is a source as well', async () => {
    const parent = (path: string) => ({ type: 'file', source: { type: 'local_file_path', path } });
    const params = {
      parent: parent('/p/one.mp4'),
      parent_overrides: [
        { input_index: 0, parent: parent('/p/two.mp4') },
        { input_index: 1, parent: null },
      ],
    };
    const registry = await registryOf(['/in/a', '/in/b'], params);
    for (const path of ['/p/one.mp4', '/p/two.mp4'])
      assert.equal((await registry.reserve(path, 0))?.reason, 'OUTPUT_TOUCHES_SOURCE');
  });

  test('links are followed before paths are compared', async () => {
    const folder = temporaryFolder();
    await mkdir(join(folder, 'real'));
    await writeFile(join(folder, 'real', 'a.mp4'), '');
    await symlink(join(folder, 'real'), join(folder, 'link'));
    const registry = await registryOf([join(folder, 'link', 'a.mp4')]);
    assert.equal((await registry.reserve(join(folder, 'real', 'a.mp4'), 0))?.reason, 'OUTPUT_TOUCHES_SOURCE');
    assert.equal(await registry.reserve(join(folder, 'real', 'new.mp4'), 0), undefined);
    assert.equal((await registry.reserve(join(folder, 'link', 'new.mp4'), 1))?.reason, 'OUTPUT_TAKEN');
  });

  test('a link with the name of a destination is not followed, since it would be replaced', async () => {
    const folder = temporaryFolder();
    await writeFile(join(folder, 'in.mp4'), '');
    await symlink(join(folder, 'in.mp4'), join(folder, 'out.mp4'));
    const registry = await registryOf([join(folder, 'in.mp4')]);
    assert.equal(await registry.reserve(join(folder, 'out.mp4'), 0), undefined);
    assert.equal((await registry.reserve(join(folder, 'in.mp4'), 0))?.reason, 'OUTPUT_TOUCHES_SOURCE');
  });

  test('what a failed input had claimed is free again', async () => {
    const registry = await registryOf([]);
    await registry.reserve('/out/x', 0);
    registry.release(0);
    assert.equal(await registry.reserve('/out/x', 1), undefined);
  });

  test('what was delivered before a restart stays taken', async () => {
    const registry = await registryOf(['/in/a', '/in/b'], null, ['/out/x']);
    assert.equal((await registry.reserve('/out/x', 1))?.reason, 'OUTPUT_TAKEN');
  });

  test('objects in buckets are compared by their address', async () => {
    const registry = await registryOf([]);
    assert.equal(await registry.reserve('s3://bucket/key.mp4', 0), undefined);
    assert.equal((await registry.reserve('s3://bucket/key.mp4', 1))?.reason, 'OUTPUT_TAKEN');
  });
});

test('an input waits to reserve its path while the database is away', async () => {
  const away = () => new AppError('DATABASE_UNREACHABLE', { address: 'db', problem: 'it was ended' });
  const answers = [away(), away(), true];
  const input = { type: 'local_file_path' as const, path: '/in/a' };
  const store = {
    pathsOfJob: async () => ({ inputs: [input, input], params: null, outputs: [], retried: [] }),
    reserveOutputPath: async () => {
      const answer = answers.shift();
      if (answer instanceof AppError) throw answer;
      return answer === true;
    },
    releaseOutputPaths: async () => undefined,
  };
  const writes = new StoreWrites(NO_LOG, async () => undefined, new AbortController().signal);
  const registries = new OutputPathRegistries(store, writes, NO_LOG, true);
  const lease = { jobId: 'job', inputIndex: 0, request: null } as LeasedInput;
  assert.equal(await registries.reserve('/out/a', lease), undefined);
  assert.deepEqual(answers, []);
});
