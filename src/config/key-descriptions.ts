import { readFileSync } from 'node:fs';
import { type KeySchema, keySchemas, RECORDS, schemaOf } from './config-schema.ts';

const TOML = new URL('../../config/service.toml', import.meta.url);

/** A key as config/service.toml shows it: `#key = default`, or `# unset (why): key = example`. */
const KEY_LINE = /^#(?<isUnset> unset(?: \((?<unset>.*?)\))?: )?(?<key>[a-z][a-z0-9_.]*) = (?<value>.*)$/;
/** A section, or an example of one whose name is the operator's: `#[signing.identities.news]`. */
const SECTION_LINE = /^#?\[(?<section>[a-z_.]+)\]$/;

/** A key of the configuration as people read of it. */
export interface KeyDescription {
  /** The section, such as `signing`. */
  readonly section: string;
  /** The key with its section, such as `signing.algorithm`. */
  readonly key: string;
  /** Types and bounds; empty where the type is not simple. Names and values stand between backquotes. */
  readonly bounds: string;
  readonly default: string;
  /** A value that it could have; null where the default is one. */
  readonly example: string | null;
  /** Empty where the key before it, or the introduction of its section, says it. */
  readonly meaning: string;
}

/** Returns all keys in the order of config/service.toml (meanings, examples), with types and bounds from the schema. */
export function describeKeys(toml = readFileSync(TOML, 'utf8')): readonly KeyDescription[] {
  const schema = keySchemas();
  const keys: KeyDescription[] = [];
  let section = '';
  let comment: string[] = [];
  for (const line of toml.split('\n')) {
    const newSection = SECTION_LINE.exec(line)?.groups?.['section'];
    const found = KEY_LINE.exec(line)?.groups;
    if (newSection !== undefined) {
      section = newSection;
      comment = [];
    } else if (section !== '' && found !== undefined) {
      keys.push({ section, ...describeKey(`${section}.${found['key']}`, found, schema), meaning: comment.join(' ') });
      comment = [];
    } else if (line.startsWith('# ')) {
      comment.push(line.slice(2));
    }
  }
  return keys;
}

function describeKey(key: string, line: Readonly<Record<string, string | undefined>>, schema: KeySchema) {
  const { isUnset, unset = 'unset', value = '' } = line;
  const bounds = boundsOf(key.split('.').reduce<KeySchema | undefined>((at, name) => at && schemaOf(name, at), schema));
  return isUnset === undefined
    ? { key, bounds, default: `\`${value}\``, example: null }
    : { key, bounds, default: unset, example: value };
}

function boundsOf(schema: KeySchema | undefined): string {
  if (schema?.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(' or ');
  if (schema?.oneOf !== undefined) return 'table';
  if (schema?.anyOf !== undefined) return schema.anyOf.map(boundsOf).join(' or ');
  if (schema?.type === 'array') return 'list';
  if (schema?.type !== 'integer' && schema?.type !== 'number') return schema?.type ?? '';
  return `${schema.type} from ${schema.minimum} to ${schema.maximum}`;
}

/** Returns the keys that a key, or the name of a section, stands for; in records the example explains each name. */
export function keysNamed(given: string): readonly KeyDescription[] {
  const keys = describeKeys();
  const record = RECORDS.find((each) => given.startsWith(`${each}.`));
  const example = keys.find(({ section }) => record !== undefined && section.startsWith(`${record}.`))?.section;
  const depth = record?.split('.').length ?? 0;
  const wanted = given
    .split('.')
    .map((name, at) => (record !== undefined && at === depth ? example?.split('.')[at] : name));
  const key = wanted.join('.');
  return keys.filter((each) => each.key === key || each.key.startsWith(`${key}.`));
}
