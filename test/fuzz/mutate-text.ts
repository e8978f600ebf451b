import type { SeededRandom } from '../support/seeded-random.ts';
import { MAX_INPUT_BYTES, mutateBytes } from './mutate-bytes.ts';

const NUMBERS = [
  '0',
  '-1',
  '1',
  '999999999',
  '4294967295',
  '99999999999999999999',
  '1e308',
  '0.0000001',
  'NaN',
  '00',
  '',
];
const SIGNS = [
  '"',
  "'",
  '<',
  '>',
  '&',
  '=',
  ',',
  ':',
  ';',
  '#',
  '{',
  '}',
  '$',
  '%',
  '\\',
  '/',
  '..',
  '\0',
  '\ufeff',
  ' ',
  '\t',
  '\n',
  '\r\n',
  'é',
  '𝄞',
  '\ud800',
  '*',
  '(',
  ')',
  '+',
  '|',
  '[',
  ']',
  '!',
  '?',
  '@',
];

/** Makes a function that changes text: in lines, numbers, quotes and signs, and with words of its language. */
export function textMutation(words: readonly string[]): (seed: Buffer, random: SeededRandom, other: Buffer) => Buffer {
  return (seed, random, other) => {
    if (random.chance(0.03)) return mutateBytes(seed, random, other);
    let text = seed.toString('utf8');
    const changes = 1 + Math.floor(random.next() ** 2 * 8);
    for (let change = 0; change < changes; change += 1)
      text = changed(text, random, other, words).slice(0, MAX_INPUT_BYTES);
    return Buffer.from(text);
  };
}

function changed(text: string, random: SeededRandom, other: Buffer, words: readonly string[]): string {
  switch (random.between(0, 8)) {
    case 0:
      return replaceOne(text, /-?\d[\d.]*/g, random.pick(NUMBERS), random);
    case 1:
      return replaceOne(text, /"[^"\n]{0,200}"/g, random.pick(['""', '"', `"${random.pick(words)}"`]), random);
    case 2:
      return inLines(text, random, (line) => [line, line]);
    case 3:
      return inLines(text, random, () => []);
    case 4:
      return inLines(text, random, (line) => [random.pick(words), line]);
    case 5:
      return insert(text, random, random.pick(SIGNS));
    case 6:
      return insert(text, random, random.pick(words));
    case 7:
      return repeatPiece(text, random);
    default:
      return inLines(text, random, (line) => [line, random.pick(other.toString('utf8').slice(0, 65_536).split('\n'))]);
  }
}

function replaceOne(text: string, pattern: RegExp, replacement: string, random: SeededRandom): string {
  const matches = [...text.slice(0, 65_536).matchAll(pattern)];
  if (matches.length === 0) return text;
  const match = random.pick(matches);
  return text.slice(0, match.index) + replacement + text.slice(match.index + match[0].length);
}

function inLines(text: string, random: SeededRandom, change: (line: string) => string[]): string {
  const lines = text.split('\n');
  const at = random.between(0, lines.length - 1);
  lines.splice(at, 1, ...change(lines[at] as string));
  return lines.join('\n');
}

function insert(text: string, random: SeededRandom, piece: string): string {
  const at = random.between(0, text.length);
  return text.slice(0, at) + piece + text.slice(at + (random.chance(0.4) ? piece.length : 0));
}

/** Repeats a few characters: some times, or now and then as often as it fits, where what is not linear shows. */
function repeatPiece(text: string, random: SeededRandom): string {
  const at = random.between(0, text.length);
  const piece = text.slice(at, at + random.between(1, random.chance(0.3) ? 200 : 12));
  const most = Math.floor(MAX_INPUT_BYTES / 2 / Math.max(piece.length, 1));
  const times = random.chance(0.04) ? most : random.between(1, Math.min(40, most));
  return text.slice(0, at) + piece.repeat(times) + text.slice(at + (random.chance(0.5) ? piece.length : 0));
}
