import type { SeededRandom } from '../support/seeded-random.ts';
import { textMutation } from './mutate-text.ts';

const NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'length',
  '',
  'type',
  'path',
  'url',
  'inputs',
  'params',
  'label',
  'data',
  'é\0',
];
/** Characters of a value that is repeated in a list. */
const MAX_REPEATED_LENGTH = 500;

const inText = textMutation([
  '{}',
  '[]',
  'null',
  'true',
  '"a"',
  '1e400',
  '"\\ud800"',
  '{"__proto__":',
  '[[[[',
  '"inputs":',
  '9007199254740993',
]);

/** Changes a JSON document in its shape; sometimes, its text as well. */
export function mutateJson(seed: Buffer, random: SeededRandom, other: Buffer): Buffer {
  const shaped = Buffer.from(JSON.stringify(reshape(JSON.parse(seed.toString('utf8')), random)));
  return random.chance(0.3) ? inText(shaped, random, other) : shaped;
}

function reshape(value: unknown, random: SeededRandom): unknown {
  if (random.chance(0.12)) return strange(value, random);
  if (Array.isArray(value)) {
    const entries = value.map((entry) => reshape(entry, random));
    if (random.chance(0.08)) return [...entries, ...entries];
    if (!random.chance(0.01)) return entries;
    // Lists of long lists would not fit into any text.
    const [first = 0] = entries;
    const filling = JSON.stringify(first).length < MAX_REPEATED_LENGTH ? first : 0;
    return new Array<unknown>(random.between(100, 20_000)).fill(filling);
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, reshape(member, random)] as [string, unknown]);
  if (random.chance(0.08)) members.push([random.pick(NAMES), strange(value, random)]);
  if (random.chance(0.05) && members.length > 0) members.splice(random.between(0, members.length - 1), 1);
  return Object.fromEntries(members);
}

function strange(value: unknown, random: SeededRandom): unknown {
  switch (random.between(0, 9)) {
    case 0:
      return null;
    case 1:
      return random.pick([0, -1, 1.5, 1e300, 2 ** 31, 2 ** 53, true]);
    case 2:
      return random.pick([
        '',
        ' ',
        '/',
        '../..',
        'file:///etc/passwd',
        'http://[::1]:1/x',
        's3://b/k',
        'a\0b',
        '\ud800',
        'C:\\x',
        '%2e%2e',
      ]);
    case 3:
      return 'x'.repeat(random.between(1, random.chance(0.1) ? 300_000 : 5_000));
    case 4:
      return [value];
    case 5:
      return { value };
    case 6:
      return nested(random.between(2, random.chance(0.1) ? 2_000 : 40), random.chance(0.5));
    case 7:
      return {};
    case 8:
      return [];
    default:
      return Object.fromEntries(Array.from({ length: random.between(1, 300) }, (_, index) => [`n${index}`, index]));
  }
}

function nested(depth: number, isList: boolean): unknown {
  let value: unknown = 0;
  for (let level = 0; level < depth; level += 1) value = isList ? [value] : { a: value };
  return value;
}
