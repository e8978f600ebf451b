import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { c2paPackageRequest, c2paVideoRequest } from '#contract/c2pa-requests.ts';
import { validate, validateInSlices } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';

const file = { type: 'local_file_path', path: '/media/a.mp4' };
const MANY = 5000;

function many<Entry>(entry: Entry): Entry[] {
  return Array.from({ length: MANY }, () => entry);
}

/** Returns the path at which a value is refused. */
async function refusedAt(schema: z.ZodType, value: unknown): Promise<string | undefined> {
  try {
    await validateInSlices(schema, value);
  } catch (error) {
    assert.ok(error instanceof AppError && error.reason === 'REQUEST_INVALID', String(error));
    return error.location.field;
  }
  return assert.fail('it was accepted');
}

describe('a body that is checked in slices', () => {
  test('comes out as it does of a check in one go', async () => {
    const mistake = fc.constantFrom(0, null, {}, { type: 'x' }, { label: 'a' }, { parent: {} }, { ...file, x: 1 });
    const entries = <Entry>(entry: Entry) => fc.array(fc.oneof({ weight: 9, arbitrary: fc.constant(entry) }, mistake));
    const body = fc.record(
      {
        inputs: entries(file),
        output: fc.constantFrom(null, { type: 'local' }, 5),
        params: fc.record(
          {
            formats: fc.array(fc.constantFrom('hls', 'dash', 'x')),
            assertions: entries({ data: [{}], label: 'a.b' }),
            parent_overrides: entries({ parent: null, input_index: 0 }),
          },
          { requiredKeys: [] },
        ),
        unknown: fc.constant(1),
      },
      { requiredKeys: ['inputs'] },
    );
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(c2paVideoRequest, c2paPackageRequest), async (given, schema) => {
        const whole = schema.safeParse(given);
        if (!whole.success) return assert.rejects(validateInSlices(schema, given), AppError);
        // As text, because the order of fields decides about an idempotency key.
        return assert.equal(JSON.stringify(await validateInSlices(schema, given)), JSON.stringify(whole.data));
      }),
    );
  });

  test('is refused at the first mistake, wherever in a list it is', async () => {
    const inputs = [...many(file), { type: 'local_file_path' }];
    assert.equal(await refusedAt(c2paVideoRequest, { inputs }), `inputs[${MANY}].path`);
    const overrides = many({ input_index: 0, parent: null });
    const params = { parent_overrides: [...overrides, { input_index: 0, parent: null, kind: 1 }] };
    const field = `params.parent_overrides[${MANY}].kind`;
    assert.equal(await refusedAt(c2paVideoRequest, { inputs: [file], params }), field);
  });

  test('is refused by the bounds of a list as well', async () => {
    assert.equal(await refusedAt(c2paVideoRequest, { inputs: [] }), 'inputs');
    const params = { tracks: many({ file: 'a.mp4' }) };
    assert.equal(await refusedAt(c2paPackageRequest, { inputs: [file], params }), 'params.tracks');
  });

  test('is not searched for more mistakes than a slice has', async () => {
    let looks = 0;
    const wrong = z.unknown().refine(() => {
      looks += 1;
      return false;
    });
    assert.equal(await refusedAt(z.object({ list: z.array(wrong) }), { list: many(0) }), 'list[0]');
    assert.ok(looks < MANY / 5, `${looks} entries were looked at`);
  });

  test('lets other work go on in between', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      turning = setImmediate(count);
    };
    let turning = setImmediate(count);
    const inputs = many(file);
    assert.deepEqual(await validateInSlices(c2paVideoRequest, { inputs }), validate(c2paVideoRequest, { inputs }));
    clearImmediate(turning);
    assert.ok(turns >= 5, `${turns} turns`);
  });
});
