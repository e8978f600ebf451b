import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { admit, files, folder, refusal } from './submit-request.ts';

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
