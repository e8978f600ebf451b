import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { parse } from 'smol-toml';
import { configSchema, type KeySchema, keySchemas } from '#config/config-schema.ts';

const FILE = new URL('../../config/service.toml', import.meta.url);

/** Names of the examples of records, by the key of the record. */
const EXAMPLES: Readonly<Record<string, string>> = { 'signing.identities': 'news', 'auth.callers': 'newsroom' };

/** Every key of the schema as a dotted path. */
function schemaKeys({ properties, additionalProperties }: KeySchema, path: readonly string[] = []): string[] {
  const example = EXAMPLES[path.join('.')];
  if (example !== undefined) return schemaKeys(additionalProperties as KeySchema, [...path, example]);
  if (properties === undefined) return [path.join('.')];
  return Object.entries(properties).flatMap(([key, inner]) => schemaKeys(inner, [...path, key]));
}

/** Every leaf of a table as a dotted path with its value; the keys of a signer depend on its type. */
function leaves(table: object, path: readonly string[] = []): [string, unknown][] {
  return Object.entries(table).flatMap(([key, value]): [string, unknown][] =>
    typeof value === 'object' && value !== null && !Array.isArray(value) && key !== 'signer'
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
    const written = (await readFile(FILE, 'utf8')).replace(/^# unset[^:]*: /gm, '').replace(/^#(?=[a-z[])/gm, '');
    const table = parse(written) as { readonly signing: object };
    assert.deepEqual(new Set(leaves(table).map(([key]) => key)), new Set(schemaKeys(keySchemas())));
    // One identity, or several: never both.
    const one = { ...table, auth: {}, signing: { ...table.signing, identities: {}, default_identity: undefined } };
    const several = {
      ...table,
      signing: { ...table.signing, certificate_path: undefined, private_key_path: undefined },
    };
    const { algorithm: _, private_key_passphrase: __, ...own } = several.signing as Record<string, unknown>;
    for (const each of [one, { ...several, signing: own }]) {
      const withoutUndefined = JSON.parse(JSON.stringify(each));
      assert.deepEqual(configSchema.safeParse(withoutUndefined).error?.issues ?? [], []);
    }
  });
});
