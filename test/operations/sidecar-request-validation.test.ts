import assert from 'node:assert/strict';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadConfig } from '#config/load-config.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { operations } from '#operations/registry.ts';
import { createAssertionChecker } from '#provenance/assertion-checker.ts';

const { checkAssertions } = createAssertionChecker();

let folder: string;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'attestream-sidecars-')));
});

after(() => rm(folder, { recursive: true }));

type Path = '/c2pa/video' | '/c2pa/audio' | '/c2pa/package' | '/package';

/** Submits to an operation whose outputs go to `<folder>/out`. */
async function admit(path: Path, body: unknown, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const operation = operations.find((candidate) => candidate.path === path) ?? assert.fail(path);
  const config = await loadConfig({ env: { SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: 'out', ...env }, cwd: folder });
  await operation.validateRequest(validate(operation.request, body), {
    config,
    checkAssertions,
    signal: new AbortController().signal,
  });
}

/** The reason, code and place of a refusal. */
async function refusal(path: Path, body: unknown, env: NodeJS.ProcessEnv = {}) {
  const error = await admit(path, body, env).then(
    () => assert.fail('the request was admitted'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof AppError, String(error));
  return { reason: error.reason, code: error.code, ...error.location };
}

function files(...paths: string[]): { type: 'local_file_path'; path: string }[] {
  return paths.map((path) => ({ type: 'local_file_path', path }));
}

describe('a manifest in a file of its own', () => {
  const sidecar = { manifest: 'sidecar' };

  for (const name of ['a.mkv', 'a.mxf', 'a.mp3', 'a.unknown', 'no-extension']) {
    test(`is taken for ${name}`, async () => {
      await admit('/c2pa/video', { inputs: files(`/media/${name}`), params: sidecar });
      await admit('/c2pa/audio', { inputs: files(`/media/${name}`), params: { ...sidecar, copy_source: false } });
    });
  }

  test('is what the refusal of other containers names', async () => {
    const error = await admit('/c2pa/video', { inputs: files('/media/a.mxf') }).catch((cause: unknown) => cause);
    assert(error instanceof AppError && error.message.includes('params.manifest'));
  });

  test('is not taken for a manifest', async () => {
    const { reason, inputIndex } = await refusal('/c2pa/video', {
      inputs: files('/a.mp4', '/b.C2PA'),
      params: sidecar,
    });
    assert.deepEqual([reason, inputIndex], ['INPUT_EXTENSION_REFUSED', 1]);
  });

  test('cannot be that of two files, with copies or without', async () => {
    for (const params of [sidecar, { ...sidecar, copy_source: false }]) {
      const { reason, field } = await refusal('/c2pa/video', { inputs: files('/m/a.mkv', '/m/a.mxf'), params });
      assert.deepEqual([reason, field], ['OUTPUT_TAKEN', 'inputs[1]']);
      await admit('/c2pa/video', { inputs: files('/m/a.mkv', '/m/b.mkv'), params });
    }
  });

  test('must not replace a source', async () => {
    const inputs = files(join(folder, 'out', 'a.mkv'));
    const parent = { type: 'file', source: { type: 'local_file_path', path: join(folder, 'out', 'a.c2pa') } };
    const params = { ...sidecar, copy_source: false, parent };
    assert.equal((await refusal('/c2pa/video', { inputs, params })).reason, 'OUTPUT_TOUCHES_SOURCE');
  });

  test('has no copy of the source where the manifest is embedded', async () => {
    for (const params of [{ copy_source: false }, { manifest: 'embedded', copy_source: true }]) {
      const found = await refusal('/c2pa/video', { inputs: files('/m/a.mp4'), params });
      assert.deepEqual([found.code, found.field], ['VALIDATION_FAILED', 'params.copy_source']);
    }
  });

  test('is not offered for folders', async () => {
    const inputs = [{ type: 'local_folder_path', path: '/media' }];
    assert.equal((await refusal('/c2pa/package', { inputs, params: sidecar })).code, 'VALIDATION_FAILED');
    assert.equal((await refusal('/package', { inputs, params: sidecar })).code, 'VALIDATION_FAILED');
  });
});
