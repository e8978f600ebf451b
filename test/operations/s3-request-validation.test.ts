import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadConfig } from '#config/load-config.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { operations } from '#operations/registry.ts';

const ON = { SERVICE__INPUT_RESOLVERS__S3__BUCKETS: 'media,other' };
const FINE = { type: 'remote_file_url', url: 's3://media/fine.mp4' };
const PATTERNS = { playlist_pattern: '*.m3u8', init_pattern: '*.mp4', frag_pattern: '*.m4s' };

describe('inputs from S3', () => {
  test('are taken from the buckets of the list, keys as they are written', async () => {
    const urls = ['s3://media/a b.mp4', 's3://other/100%/ü?x#y.mp4', 's3://media/a//b.mp4'];
    await admit('/c2pa/video', { inputs: urls.map((url) => ({ type: 'remote_file_url', url })) });
    await admit('/c2pa/fragmented', {
      inputs: ['s3://media', 's3://other/folder/'].map((url) => ({ type: 'remote_folder_url', url })),
      params: PATTERNS,
    });
  });

  test('are taken from every bucket where no list is set', async () => {
    const env = { SERVICE__INPUT_RESOLVERS__S3__REGION: 'eu-central-1' };
    await admit('/c2pa/audio', { inputs: [{ type: 'remote_file_url', url: 's3://any/a.mp3' }] }, env);
  });

  for (const [what, url, reason] of [
    ['of a bucket that is not in the list', 's3://secret/a.mp4', 'S3_BUCKET_REFUSED'],
    ['whose key leads upwards', 's3://media/../secret/a.mp4', 'S3_ADDRESS_INVALID'],
    ['without a key', 's3://media', 'S3_ADDRESS_INVALID'],
    ['that are folders', 's3://media/folder/', 'S3_ADDRESS_INVALID'],
    ['of what cannot be a bucket', 's3://m/a.mp4', 'S3_ADDRESS_INVALID'],
  ] as const) {
    test(`${what} are refused with their index`, async () => {
      const found = await refusal('/c2pa/video', { inputs: [FINE, { type: 'remote_file_url', url }] });
      assert.deepEqual(found, { reason, code: 'VALIDATION_FAILED', field: 'inputs[1].url', inputIndex: 1 });
    });
  }

  test('are refused while they are off, folders and parents too', async () => {
    const off = async (path: string, body: unknown) => (await refusal(path, body, {})).reason;
    assert.equal(await off('/c2pa/video', { inputs: [FINE] }), 'S3_INPUTS_OFF');
    const folder = { type: 'remote_folder_url', url: 's3://media/a' };
    assert.equal(await off('/c2pa/fragmented', { inputs: [folder], params: PATTERNS }), 'S3_INPUTS_OFF');
    const params = { parent: { type: 'file', source: FINE } };
    const local = { type: 'local_file_path', path: '/media/a.mp4' };
    assert.equal(await off('/c2pa/video', { inputs: [local], params }), 'S3_INPUTS_OFF');
  });

  test('that are parents are refused with the place of the parent', async () => {
    const source = { type: 'remote_file_url', url: 's3://secret/a.mp4' };
    const override = { input_index: 0, parent: { type: 'file', source } };
    const found = await refusal('/c2pa/video', { inputs: [FINE], params: { parent_overrides: [override] } });
    assert.deepEqual(found, {
      reason: 'S3_BUCKET_REFUSED',
      code: 'VALIDATION_FAILED',
      field: 'params.parent_overrides[0].parent.source.url',
      inputIndex: 0,
    });
  });
});

async function admit(path: string, body: unknown, env: NodeJS.ProcessEnv = ON): Promise<void> {
  const operation = operations.find((candidate) => candidate.path === path) ?? assert.fail(path);
  await operation.validateRequest(validate(operation.request, body), {
    config: await loadConfig({ env, cwd: '/nowhere' }),
    checkAssertions: async () => undefined,
    signal: new AbortController().signal,
  });
}

/** The reason, code and place of a refusal. */
async function refusal(path: string, body: unknown, env: NodeJS.ProcessEnv = ON) {
  const error = await admit(path, body, env).then(
    () => assert.fail('the request was admitted'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof AppError, String(error));
  return { reason: error.reason, code: error.code, ...error.location };
}
