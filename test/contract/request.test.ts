import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { z } from 'zod';
import {
  c2paAudioRequest,
  c2paFragmentedRequest,
  c2paPackageRequest,
  c2paVideoRequest,
} from '#contract/c2pa-requests.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';

const file = { type: 'local_file_path', path: '/media/a.mp4' };
const remote = { type: 'remote_file_url', url: 'https://host/a.mp4' };

/** Returns the field and the input for which a request is refused, as a caller sees them. */
function refusedAt(body: unknown, schema: z.ZodType = c2paVideoRequest): { field?: string; inputIndex?: number } {
  try {
    validate(schema, body);
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    assert.deepEqual([error.reason, error.code], ['REQUEST_INVALID', 'VALIDATION_FAILED']);
    return error.location;
  }
  return assert.fail('the request was accepted');
}

describe('a request', () => {
  for (const [what, body] of [
    ['with one input', { inputs: [file] }],
    [
      'with all four types of input: the operation decides',
      {
        inputs: [
          file,
          remote,
          { type: 'local_folder_path', path: '/m' },
          { type: 'remote_folder_url', url: 's3://bucket/prefix/' },
        ],
      },
    ],
    ['with output null', { inputs: [file], output: null }],
    ['with an output without fields', { inputs: [file], output: { type: 'local' } }],
    ['with null as prefix and name', { inputs: [file], output: { type: 's3', bucket: 'b', prefix: null, name: null } }],
    [
      'with a hint',
      {
        inputs: [
          { ...remote, filename_hint: 'b.mp4' },
          { ...remote, filename_hint: null },
        ],
      },
    ],
    ['with empty params', { inputs: [file], params: {} }],
    [
      'with null as the data of an assertion',
      { inputs: [file], params: { assertions: [{ label: 'a.b', data: null }] } },
    ],
    [
      'with a parent that is a reference',
      { inputs: [file], params: { parent: { type: 'reference', reference: 't' } } },
    ],
    ['with a parent that is a remote file', { inputs: [file], params: { parent: { type: 'file', source: remote } } }],
    [
      'with overrides of all three kinds',
      {
        inputs: [file, file, file],
        params: {
          parent: null,
          parent_overrides: [
            { input_index: 0 },
            { input_index: 1, parent: null },
            { input_index: 2, parent: { type: 'file', source: file } },
          ],
        },
      },
    ],
    ['with a presigned URL', { inputs: [{ ...remote, url: 'https://host:8443/a%20b.mp4?X-Amz-Signature=abc&x=@' }] }],
  ] as const) {
    test(`is taken ${what}, and not changed`, () => {
      assert.deepEqual(validate(c2paVideoRequest, body), body);
      assert.deepEqual(validate(c2paAudioRequest, body), body);
    });
  }

  for (const [body, field, inputIndex] of [
    [{}, 'inputs'],
    [{ inputs: [] }, 'inputs'],
    [{ inputs: null }, 'inputs'],
    [{ inputs: 'x' }, 'inputs'],
    [{ inputs: [file, null] }, 'inputs[1]', 1],
    [{ inputs: [file, {}] }, 'inputs[1].type', 1],
    [{ inputs: [file, { type: 'upload' }] }, 'inputs[1].type', 1],
    [{ inputs: [{ type: 'local_file_path' }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, path: '' }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, path: 5 }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, path: 'a\0b' }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, path: 'a\ud800b' }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, path: 'x'.repeat(10_000) }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...file, filename_hint: 'x' }] }, 'inputs[0].filename_hint', 0],
    [{ inputs: [{ ...remote, path: '/a' }] }, 'inputs[0].path', 0],
    [{ inputs: [{ ...remote, url: 'ftp://host/a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: 'file:///etc/passwd' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: '/a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: 'https://user@host/a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: 'https://user:word@host/a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: 's3://key:word@bucket/a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [{ ...remote, url: 's3:///a.mp4' }] }, 'inputs[0].url', 0],
    [{ inputs: [file], Output: null }, 'Output'],
    [{ inputs: [file], output: 'local' }, 'output'],
    [{ inputs: [file], output: {} }, 'output.type'],
    [{ inputs: [file], output: { type: 'ftp' } }, 'output.type'],
    [{ inputs: [file], output: { type: 's3' } }, 'output.bucket'],
    [{ inputs: [file], output: { type: 'local', bucket: 'b' } }, 'output.bucket'],
    [{ inputs: [file], output: { type: 'local', prefix: 5 } }, 'output.prefix'],
    [{ inputs: [file], params: null }, 'params'],
    [{ inputs: [file], params: { parent_overides: [] } }, 'params.parent_overides'],
    [{ inputs: [file], params: { assertions: null } }, 'params.assertions'],
    [{ inputs: [file], params: { assertions: [{ data: 1 }] } }, 'params.assertions[0].label'],
    [{ inputs: [file], params: { assertions: [{ label: '', data: 1 }] } }, 'params.assertions[0].label'],
    [{ inputs: [file], params: { assertions: [{ label: 'a' }] } }, 'params.assertions[0].data'],
    [{ inputs: [file], params: { assertions: [{ label: 'a', data: 1, kind: 'x' }] } }, 'params.assertions[0].kind'],
    [
      { inputs: [file], params: { parent: { type: 'file', source: { type: 'local_folder_path', path: '/m' } } } },
      'params.parent.source.type',
    ],
    [{ inputs: [file], params: { parent: { type: 'reference' } } }, 'params.parent.reference'],
    [{ inputs: [file], params: { parent_overrides: [{ parent: null }] } }, 'params.parent_overrides[0].input_index'],
    [{ inputs: [file], params: { parent_overrides: [{ input_index: -1 }] } }, 'params.parent_overrides[0].input_index'],
    [
      { inputs: [file], params: { parent_overrides: [{ input_index: 0.5 }] } },
      'params.parent_overrides[0].input_index',
    ],
    [{ inputs: [file], params: { playlist_pattern: '*.m3u8' } }, 'params.playlist_pattern'],
  ] as const) {
    test(`is refused at ${field}: ${JSON.stringify(body).slice(0, 90)}`, () => {
      assert.deepEqual(refusedAt(body), { field, ...(inputIndex !== undefined && { inputIndex }) });
    });
  }

  test('is refused where a glob is longer than the ones that are matched, before there is a job', () => {
    const fits = 'x'.repeat(1000);
    const patterns = { playlist_pattern: fits, init_pattern: fits, frag_pattern: fits };
    const folders = { inputs: [{ type: 'local_folder_path', path: '/m' }] };
    const params = { ...patterns, include: [fits] };
    assert.deepEqual(validate(c2paPackageRequest, { ...folders, params }).params, params);
    assert.deepEqual(validate(c2paFragmentedRequest, { ...folders, params: patterns }).params, patterns);
    for (const name of Object.keys(patterns)) {
      const body = { ...folders, params: { ...patterns, [name]: `${fits}x` } };
      assert.deepEqual(refusedAt(body, c2paFragmentedRequest), { field: `params.${name}` });
      assert.deepEqual(refusedAt(body, c2paPackageRequest), { field: `params.${name}` });
    }
    const include = { ...folders, params: { include: ['*.mp4', `${fits}x`] } };
    assert.deepEqual(refusedAt(include, c2paPackageRequest), { field: 'params.include[1]' });
  });

  test('that is no object is refused without a field', () => {
    for (const body of [undefined, null, 5, 'x', []]) assert.deepEqual(refusedAt(body), {});
  });

  test('is either taken as it is or refused in the words of the catalogue, whatever it holds', () => {
    const anything = fc.jsonValue({ maxDepth: 5 });
    const nearly = fc.record(
      {
        inputs: fc.array(
          fc.record(
            { type: fc.constantFrom('local_file_path', 'remote_file_url', 'x'), path: anything, url: anything },
            { requiredKeys: [] },
          ),
        ),
        output: fc.oneof(
          anything,
          fc.record({ type: fc.constantFrom('local', 's3'), prefix: anything }, { requiredKeys: [] }),
        ),
        params: fc.oneof(
          anything,
          fc.record({ assertions: anything, parent: anything, parent_overrides: anything }, { requiredKeys: [] }),
        ),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(anything, nearly), (body) => {
        try {
          assert.deepEqual(validate(c2paVideoRequest, body), body);
        } catch (error) {
          assert.ok(error instanceof AppError && error.reason === 'REQUEST_INVALID', String(error));
        }
      }),
    );
  });

  test('never repeats a URL in its message: it may hold a secret', () => {
    for (const url of ['ftp://host/a?hush', 'https://u:hush@host/a', 'hush', 's3:///hush']) {
      assert.throws(
        () => validate(c2paVideoRequest, { inputs: [{ ...remote, url }] }),
        (error: AppError) => !error.message.includes('hush'),
      );
    }
  });

  test('is refused with the start of a name that is half a megabyte long', () => {
    const { field = '' } = refusedAt({ inputs: [file], ['x'.repeat(524_288)]: 1 });
    assert.ok(field.startsWith('xxx') && field.length < 1_000);
  });
});
