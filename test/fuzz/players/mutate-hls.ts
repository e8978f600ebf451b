import type { SeededRandom } from '../../support/seeded-random.ts';
import { ATTRIBUTES, CHARACTERS, LINES, NUMBERS } from './hls-pieces.ts';

/** Changes an HLS playlist in one way, as an attacker would; `other` is a second playlist. */
export function changeHls(text: string, random: SeededRandom, other: string): string {
  return random.pick(CHANGES)(text, random, other);
}

type Change = (text: string, random: SeededRandom, other: string) => string;

const CHANGES: readonly Change[] = [
  (text, random) => editLine(text, random, (line) => [random.pick(LINES), line]),
  (text, random) => editLine(text, random, (line) => [random.pick(LINES), line]),
  (text, random) => editLine(text, random, (line) => [line, line]),
  (text, random) => editLine(text, random, () => []),
  (text, random, other) => editLine(text, random, (line) => [random.pick(other.split('\n')), line]),
  (text, random) => editLine(text, random, (line) => [changeAttributes(line, random)], /[=,]/),
  (text, random) => editLine(text, random, (line) => [changeAttributes(line, random)], /[=,]/),
  (text, random) => editLine(text, random, (line) => [insertAt(line, random)]),
  (text, random) => editLine(text, random, (line) => [insertAt(line, random)], /^[^#]/),
  (text, random) => editLine(text, random, (line) => [changeCase(line, random)]),
  (text, random) => editLine(text, random, (line) => [encodeOne(line, random)], /^[^#]|URI=/),
  (text, random) => editLine(text, random, (line) => [changeNumber(line, random)], /\d/),
  (text, random) =>
    editLine(text, random, (line) => [
      line + random.pick([',', ' ', '#', ' #EXTINF:4,', ',x', ':', ' other.m4s', '?', '\r', '\\']),
    ]),
  moveLine,
  swapLines,
  mergePlaylists,
  changeLineEnds,
  useVariable,
];

function editLine(text: string, random: SeededRandom, edit: (line: string) => string[], pattern = /^/): string {
  const lines = text.split('\n');
  const fitting = [...lines.keys()].filter((at) => pattern.test(lines[at] ?? ''));
  if (fitting.length === 0) return text;
  const at = random.pick(fitting);
  lines.splice(at, 1, ...edit(lines[at] ?? ''));
  return lines.join('\n');
}

function changeAttributes(line: string, random: SeededRandom): string {
  const [, tag = '', list = ''] = /^(#[^:]*:)?(.*)$/s.exec(line) ?? [];
  const attributes = list.match(/[^",]*(?:"[^"]*"[^",]*)*(?:,|$)/g)?.map((each) => each.replace(/,$/, '')) ?? [];
  if (attributes.at(-1) === '') attributes.pop();
  const at = random.between(0, Math.max(attributes.length - 1, 0));
  const chosen = attributes[at] ?? '';
  const [name = '', value = ''] = chosen.split(/=(.*)/s);
  const edits: readonly (readonly string[])[] = [
    [chosen, chosen],
    [],
    [random.pick(ATTRIBUTES), chosen],
    [chosen, random.pick(ATTRIBUTES)],
    [`${name} = ${value}`],
    [`${name}=${value.replaceAll('"', '')}`],
    [`${name}="${value.replaceAll('"', '')}"`],
    [`${name}='${value.replaceAll('"', '')}'`],
    [`${name}=`],
    [name],
    [`${name.toLowerCase()}=${value}`],
    [`X-${chosen}`],
    [`${random.pick(ATTRIBUTES).split('=')[0]}=${value}`],
    ['', chosen],
  ];
  attributes.splice(at, 1, ...random.pick(edits));
  return tag + (random.chance(0.2) ? random.shuffled(attributes) : attributes).join(random.chance(0.05) ? ', ' : ',');
}

function insertAt(line: string, random: SeededRandom): string {
  const borders = [...line.matchAll(/[:,=@"./]|^|$/g)].map(({ index }) => index + (random.chance(0.5) ? 1 : 0));
  const at = random.chance(0.6) ? random.pick(borders) : random.between(0, line.length);
  return line.slice(0, at) + random.pick(CHARACTERS) + line.slice(at + (random.chance(0.2) ? 1 : 0));
}

function changeCase(line: string, random: SeededRandom): string {
  const words = [...line.matchAll(/[A-Za-z-]+/g)];
  if (words.length === 0) return line;
  const { index, 0: word } = random.pick(words);
  const changed = word === word.toLowerCase() ? word.toUpperCase() : word.toLowerCase();
  return line.slice(0, index) + changed + line.slice(index + word.length);
}

function encodeOne(line: string, random: SeededRandom): string {
  const start = line.startsWith('#') ? line.indexOf('URI=') + 5 : 0;
  const at = random.between(start, Math.max(line.length - 2, start));
  const code = line.charCodeAt(at);
  if (Number.isNaN(code) || code > 126) return line;
  const hex = code.toString(16).padStart(2, '0');
  const encoded = random.pick([
    `%${hex}`,
    `%${hex.toUpperCase()}`,
    `%25${hex}`,
    `&#${code};`,
    `\\x${hex}`,
    `%c1%${(code | 0x80).toString(16)}`,
  ]);
  return line.slice(0, at) + encoded + line.slice(at + 1);
}

function changeNumber(line: string, random: SeededRandom): string {
  const { index, 0: number } = random.pick([...line.matchAll(/\d+(?:\.\d+)?/g)]);
  return (
    line.slice(0, index) +
    random.pick([...NUMBERS, `0${number}`, `${number}0`, `${number}.0`]) +
    line.slice(index + number.length)
  );
}

function moveLine(text: string, random: SeededRandom): string {
  const lines = text.split('\n');
  const [moved = ''] = lines.splice(random.between(0, lines.length - 1), 1);
  lines.splice(random.between(0, lines.length), 0, moved);
  return lines.join('\n');
}

function swapLines(text: string, random: SeededRandom): string {
  const lines = text.split('\n');
  const first = random.between(0, lines.length - 1);
  const second = random.between(0, lines.length - 1);
  [lines[first], lines[second]] = [lines[second] ?? '', lines[first] ?? ''];
  return lines.join('\n');
}

function mergePlaylists(text: string, random: SeededRandom, other: string): string {
  const lines = text.split('\n');
  const others = other.split('\n');
  const from = random.between(0, others.length - 1);
  const piece = others.slice(random.chance(0.3) ? 1 : from, from + random.between(1, 8));
  lines.splice(random.chance(0.2) ? lines.length : random.between(1, lines.length), 0, ...piece);
  return lines.join('\n');
}

function changeLineEnds(text: string, random: SeededRandom): string {
  switch (random.between(0, 4)) {
    case 0:
      return text.replaceAll('\n', '\r\n');
    case 1:
      return text.trimEnd();
    case 2:
      return text.replaceAll('\n', '\n\n');
    case 3:
      return `\ufeff${text}`;
    default:
      return text.replaceAll('\n', '\r');
  }
}

/** Writes a part of an address as a variable. */
function useVariable(text: string, random: SeededRandom): string {
  const value = random.pick(['film', 'a/b', '$1', '$&', '', 'x"', 'é', '{$m}', '%20', ' ', '#', '..']);
  const used = editLine(
    text,
    random,
    (line) => [
      line.replace(/[\w-]+(?=\.\w+"?)/, random.pick(['{$v}', '{$v}{$v}', '{$V}', '{$v }', '{$ v}', '{$v}-{$n}'])),
    ],
    /^[^#]|URI=/,
  );
  const definition = `#EXT-X-DEFINE:NAME="v",VALUE="${value}"`;
  return editLine(used, random, (line) => [line, definition], random.chance(0.7) ? /^#EXTM3U/ : /^/);
}
