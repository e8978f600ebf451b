import { AppError } from '#errors/app-error.ts';
import { TAGS } from './hls-tags.ts';
import { refuseLarger } from './limits.ts';

/** A line of an HLS playlist that is a tag or an address. Lines count from one. */
export interface HlsLine {
  readonly line: number;
  /** Without white space around it. */
  readonly text: string;
  /** The name of a tag, without `#`; null for an address. */
  readonly name: string | null;
  /** The text behind the colon of a tag; null where there is none. */
  readonly value: string | null;
  /** The attributes of a tag as they are written, quotes included; the first one of each name. */
  readonly attributes: ReadonlyMap<string, string>;
  /** True where the value is a list of attributes, each of another name, and nothing else (RFC 8216bis §4.2). */
  readonly isList: boolean;
}

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();

/** Reads a line. Returns null where it is a comment, or empty. */
export function readHlsLine(text: string, line: number): HlsLine | null {
  if (!text.startsWith('#')) {
    return text === '' ? null : { line, text, name: null, value: null, attributes: NO_ATTRIBUTES, isList: false };
  }
  if (!text.startsWith('#EXT')) return null;
  const colon = text.indexOf(':');
  const name = text.slice(1, colon === -1 ? undefined : colon);
  const value = colon === -1 ? null : text.slice(colon + 1);
  const grammar = TAGS.get(name)?.value;
  if (value === null || grammar === null || grammar instanceof RegExp) {
    return { line, text, name, value, attributes: NO_ATTRIBUTES, isList: false };
  }
  const placed = placedAttributes(text);
  const attributes = new Map<string, string>();
  for (const each of placed)
    if (!attributes.has(each.name)) attributes.set(each.name, text.slice(each.start, each.end));
  const list = placed.map((each) => text.slice(each.start - each.name.length - 1, each.end)).join();
  const isList = value === list && attributes.size === placed.length && placed.every(({ start, end }) => start < end);
  return { line, text, name, value, attributes, isList };
}

/** Returns the value of an attribute, without quotes. */
export function attributeOf({ attributes }: HlsLine, name: string): string | undefined {
  return attributes.get(name)?.replace(/^"|"$/g, '');
}

const REFERENCE = /\{\$([\w-]+)\}/g;

/** Characters that all variables of one playlist may come to when they are written out. */
const MAX_EXPANDED_LENGTH = 16 * 1024 * 1024;

/**
 * Returns a function that writes out the variables that a playlist defines itself (EXT-X-DEFINE with NAME and VALUE, RFC 8216bis
 * §4.3): it returns a line as it is meant behind the lines that were written out before; null where it is nothing then. A variable that comes from another playlist, or with the player's request, has no known value here: an address made of one
 * is refused.
 */
export function variablesOf(playlist: string): (read: HlsLine) => HlsLine | null {
  const values = new Map<string, string>();
  let count = 0;
  const expand = (text: string): string =>
    text.replace(REFERENCE, (reference, name: string) => {
      const value = values.get(name) ?? reference;
      count += value.length;
      refuseLarger(playlist, 'characters in variables, written out', count, MAX_EXPANDED_LENGTH);
      return value;
    });
  return (read) => {
    const name = read.name === 'EXT-X-DEFINE' ? attributeOf(read, 'NAME') : undefined;
    const written = read.text.includes('{$') ? readHlsLine(expand(read.text), read.line) : read;
    if (name !== undefined) values.set(name, attributeOf(read, 'VALUE') ?? '');
    if (written === null) return null;
    const address = written.name === null ? written.text : (attributeOf(written, 'URI') ?? '');
    if (address.search(REFERENCE) === -1) return written;
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist,
      line: read.line,
      feature: 'An address made of variables that the playlist does not define itself (EXT-X-DEFINE)',
      remedy: 'Write the address out.',
    });
  };
}

/** An attribute of an HLS tag and where its value stands in the line, quotes included. */
interface PlacedAttribute {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** Parses the attribute list of a tag's line (RFC 8216bis §4.2); text that is no attribute ends it. */
function placedAttributes(line: string): PlacedAttribute[] {
  const attributes: PlacedAttribute[] = [];
  const pattern = /[:,]\s*([A-Z0-9-]+)=("[^"]*"|[^",\s]*)\s*(?=,|$)/gy;
  pattern.lastIndex = Math.max(line.indexOf(':'), 0);
  for (let match = pattern.exec(line); match !== null; match = pattern.exec(line)) {
    const [whole, name = '', value = ''] = match;
    const start = match.index + whole.indexOf('=') + 1;
    attributes.push({ name, start, end: start + value.length });
  }
  return attributes;
}

/**
 * Returns the line with an attribute's value replaced, quotes and all else kept; unchanged where it has
 * no such attribute.
 */
export function replaceHlsAttribute(line: string, name: string, value: string): string {
  const attribute = placedAttributes(line).find((candidate) => candidate.name === name);
  if (attribute === undefined) return line;
  const quote = line[attribute.start] === '"' ? '"' : '';
  return line.slice(0, attribute.start) + quote + value + quote + line.slice(attribute.end);
}

/** Returns the line without an attribute. */
export function removeHlsAttribute(line: string, name: string): string {
  const attribute = placedAttributes(line).find((candidate) => candidate.name === name);
  if (attribute === undefined) return line;
  const nameStart = attribute.start - name.length - 1;
  const isFirst = /:\s*$/.test(line.slice(0, nameStart));
  if (isFirst) return line.slice(0, nameStart) + line.slice(attribute.end).replace(/^\s*,\s*/, '');
  return line.slice(0, nameStart).replace(/,\s*$/, '') + line.slice(attribute.end);
}
