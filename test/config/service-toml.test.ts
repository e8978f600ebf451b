import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { parse } from 'smol-toml';
import { configSchema, type KeySchema, keySchemas } from '#config/config-schema.ts';

const FILE = new URL('../../config/service.toml', import.meta.url);

/** Every key of the schema as a dotted path. */
function schemaKeys({ properties }: KeySchema, path: readonly string[] = []): string[] {
  if (properties === undefined) return [path.join('.')];
  return Object.entries(properties).flatMap(([key, inner]) => schemaKeys(inner, [...path, key]));
}

/** Every leaf of a table as a dotted path with its value. */
function leaves(table: object, path: readonly string[] = []): [string, unknown][] {
  return Object.entries(table).flatMap(([key, value]): [string, unknown][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? leaves(value, [...path, key])
      : [[[...path, key].join('.'), value]],
  );
}

describe('config/service.toml', () => {
  test('changes nothing as it is', async () => {
    assert.deepEqual(leaves(parse(await readFile(FILE, 'utf8'))), []);
  });

  test('shows the default of every key that has one', async () => {
    const shown = leaves(parse((await readFile(FILE, 'utf8')).replace(/^#(?=[a-z])/gm, '')));
    const defaults = leaves(configSchema.parse({})).filter(([key]) => key !== 'worker.default_max_files_parallel');
    assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(defaults));
  });

  test('shows a valid example of every key that has none', async () => {
    const written = (await readFile(FILE, 'utf8')).replace(/^# unset[^:]*: /gm, '').replace(/^#(?=[a-z])/gm, '');
    const table = parse(written);
    assert.deepEqual(new Set(leaves(table).map(([key]) => key)), new Set(schemaKeys(keySchemas())));
    assert.equal(configSchema.safeParse(table).success, true);
  });
});
