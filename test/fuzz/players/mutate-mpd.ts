import type { SeededRandom } from '../../support/seeded-random.ts';
import { ATTRIBUTES, CHARACTERS, ELEMENTS } from './mpd-pieces.ts';

const TAG = /<\/?[A-Za-z][^<>]*>/g;
const ATTRIBUTE = /\s([\w:.-]+)\s*=\s*("[^"]*"|'[^']*')/g;

type Change = (text: string, random: SeededRandom, other: string) => string;

/** Changes an MPD in one way, as an attacker would; `other` is a second one. */
export function changeMpd(text: string, random: SeededRandom, other: string): string {
  return random.pick(CHANGES)(text, random, other);
}

const CHANGES: readonly Change[] = [
  (text, random) => insertBetween(text, random, random.pick(ELEMENTS)),
  (text, random) => insertBetween(text, random, random.pick(ELEMENTS)),
  (text, random, other) => insertBetween(text, random, random.pick(elementsOf(other)).text),
  (text, random) => editElement(text, random, (element) => element + element),
  (text, random) => editElement(text, random, () => ''),
  moveElement,
  (text, random) =>
    editElement(text, random, (element) =>
      element
        .replace(/<(\/?)(\w+)/g, '<$1x:$2')
        .replace('>', ' >')
        .replace(/ (?=\/?>)/, ' xmlns:x="urn:mpeg:dash:schema:mpd:2011" '),
    ),
  (text, random) => editElement(text, random, (element) => `<!--${element}-->`),
  (text, random) => editTag(text, random, (tag) => tag.replace(/\s*(\/?>)$/, ` ${random.pick(ATTRIBUTES)}$1`)),
  (text, random) => editTag(text, random, (tag) => setAttribute(tag, random.pick(ATTRIBUTES))),
  (text, random) => editTag(text, random, (tag) => setAttribute(tag, random.pick(ATTRIBUTES))),
  (text, random) => editAttribute(text, random, (attribute) => attribute + attribute),
  (text, random) => editAttribute(text, random, () => ''),
  (text, random) => editAttribute(text, random, (attribute, name) => attribute.replace(name, name.toUpperCase())),
  (text, random) => editAttribute(text, random, (attribute, name) => attribute.replace(name, `x:${name}`)),
  (text, random) => editAttribute(text, random, (attribute) => insertAt(attribute, random)),
  (text, random) => editAttribute(text, random, (attribute) => insertAt(attribute, random)),
  (text, random) => editAttribute(text, random, (attribute) => encodeOne(attribute, random)),
  (text, random) =>
    editAttribute(text, random, (attribute) =>
      attribute.replace(
        /\d+/,
        random.pick([
          '0',
          '00',
          '1',
          '2',
          '3',
          '01',
          '+1',
          '-1',
          '1e3',
          '1.5',
          ' 2 ',
          '0x2',
          '9007199254740993',
          '99999999999999999999',
          '',
        ]),
      ),
    ),
  (text, random) => editTag(text, random, (tag) => changeCase(tag, random)),
  (text, random) => insertAt(text, random),
];

function insertBetween(text: string, random: SeededRandom, piece: string): string {
  const borders = [...text.matchAll(TAG)].map(({ index, 0: tag }) => index + (random.chance(0.5) ? tag.length : 0));
  const at = random.pick([...borders, text.length]);
  return text.slice(0, at) + piece + text.slice(at);
}

interface FoundElement {
  readonly text: string;
  readonly start: number;
}

/** Returns the elements of a document whose end is found by counting the tags. */
function elementsOf(text: string): FoundElement[] {
  const open: number[] = [];
  const found: FoundElement[] = [];
  for (const { index, 0: tag } of text.matchAll(TAG)) {
    if (!tag.startsWith('</')) open.push(index);
    if (!tag.startsWith('</') && !tag.endsWith('/>')) continue;
    const start = open.pop();
    if (start !== undefined) found.push({ text: text.slice(start, index + tag.length), start });
  }
  return found.length === 0 ? [{ text: '', start: text.length }] : found;
}

function editElement(text: string, random: SeededRandom, edit: (element: string) => string): string {
  const { text: element, start } = random.pick(elementsOf(text));
  return text.slice(0, start) + edit(element) + text.slice(start + element.length);
}

function moveElement(text: string, random: SeededRandom): string {
  const { text: element, start } = random.pick(elementsOf(text));
  return insertBetween(text.slice(0, start) + text.slice(start + element.length), random, element);
}

function editTag(text: string, random: SeededRandom, edit: (tag: string) => string): string {
  const tags = [...text.matchAll(TAG)].filter(({ 0: each }) => !each.startsWith('</'));
  if (tags.length === 0) return text;
  const { index, 0: tag } = random.pick(tags);
  return text.slice(0, index) + edit(tag) + text.slice(index + tag.length);
}

function setAttribute(tag: string, attribute: string): string {
  const [name = ''] = attribute.split('=');
  const without = tag.replace(new RegExp(`\\s${name}="[^"]*"`), '');
  return without.replace(/\s*(\/?>)$/, (end) => ` ${attribute}${end.trim()}`);
}

function editAttribute(text: string, random: SeededRandom, edit: (attribute: string, name: string) => string): string {
  return editTag(text, random, (tag) => {
    const attributes = [...tag.matchAll(ATTRIBUTE)];
    if (attributes.length === 0) return tag;
    const { index, 0: attribute, 1: name = '' } = random.pick(attributes);
    return tag.slice(0, index) + edit(attribute, name) + tag.slice(index + attribute.length);
  });
}

function insertAt(text: string, random: SeededRandom): string {
  const at = random.between(0, text.length);
  return text.slice(0, at) + random.pick(CHARACTERS) + text.slice(at + (random.chance(0.2) ? 1 : 0));
}

function encodeOne(attribute: string, random: SeededRandom): string {
  const start = attribute.search(/["']/) + 1;
  const at = random.between(start, Math.max(attribute.length - 2, start));
  const code = attribute.charCodeAt(at);
  const hex = code.toString(16);
  const encoded = random.pick([
    `&#${code};`,
    `&#x${hex};`,
    `&#X${hex};`,
    `&#0${code};`,
    `%${hex}`,
    `&#${code}`,
    `%25${hex}`,
  ]);
  return attribute.slice(0, at) + encoded + attribute.slice(at + 1);
}

function changeCase(tag: string, random: SeededRandom): string {
  const words = [...tag.matchAll(/[A-Za-z]+/g)];
  const { index, 0: word } = random.pick(words);
  const changed = word === word.toLowerCase() ? word.toUpperCase() : word.toLowerCase();
  return tag.slice(0, index) + changed + tag.slice(index + word.length);
}
