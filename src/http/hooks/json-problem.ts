import { setImmediate } from 'node:timers/promises';

interface JsonLimits {
  /** The deepest nesting of lists and objects. */
  readonly maxNesting: number;
  /** The largest number of values: strings, numbers, lists, objects and the like. */
  readonly maxValues: number;
  /** The largest number of different member names. */
  readonly maxNames: number;
}

/** Characters that are scanned without yielding to the event loop; it takes milliseconds. */
const SCAN_BATCH_LENGTH = 256 * 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DIGIT_ZERO = 0x30;
const DIGIT_NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** A number of JSON, or what a broken text has instead. */
const NUMBER = /[-+.\deE]+/y;

/** Characters of a name that a message repeats. */
const MAX_SHOWN_NAME_LENGTH = 100;

/** Shorter numbers are kept whatever they are: 15 digits always fit, and 9e99 is not too large. */
const MIN_LOST_NUMBER_LENGTH = 5;

/** The names of the objects and lists that are open at a position. */
class OpenNames {
  /** The names of each, outermost first: none, the only one, or all. Most objects of a large body have one or two. */
  readonly #open: (Set<string> | string | null)[] = [];

  enter(): void {
    this.#open.push(null);
  }

  leave(): void {
    this.#open.pop();
  }

  /** Adds a name to the innermost object. Returns false where it has the name already. */
  add(name: string): boolean {
    const names = this.#open.at(-1);
    if (names === undefined) return true;
    if (names instanceof Set) return names.size < names.add(name).size;
    this.#open[this.#open.length - 1] = names === null ? name : new Set([names, name]);
    return names !== name;
  }
}

/** Returns the name between two quotes as the parser reads it. */
function nameIn(text: string, start: number, end: number): string {
  const raw = text.slice(start, end);
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    // The text is no JSON, as its parser will say.
    return raw;
  }
}

/**
 * Returns why a text should not be parsed, if it is JSON at all: it is nested too deep, holds too many values or names,
 * an object with a name twice, or a number that would not be kept. Returns null where none of it is so. Looks at every
 * character once, in slices between which other work goes on, and keeps nothing but names.
 */
export async function jsonProblem(
  text: string,
  { maxNesting, maxValues, maxNames }: JsonLimits,
): Promise<string | null> {
  const names = new Set<string>();
  const open = new OpenNames();
  let depth = 0;
  let values = 1;
  let pauseAt = SCAN_BATCH_LENGTH;
  let isInString = false;
  let stringStart = 0;
  let stringEnd = 0;
  for (let index = 0; index < text.length; index += 1) {
    if (index >= pauseAt) {
      pauseAt = index + SCAN_BATCH_LENGTH;
      await setImmediate();
    }
    const code = text.charCodeAt(index);
    if (isInString) {
      // Brackets and digits in it do not count.
      if (code === BACKSLASH) index += 1;
      else if (code === QUOTE) [isInString, stringEnd] = [false, index];
    } else if (code === QUOTE) [isInString, stringStart] = [true, index + 1];
    else if (code === COLON) {
      const name = nameIn(text, stringStart, stringEnd);
      names.add(name);
      // The parser would keep the last one, and other parsers another: what is signed must not depend on that.
      if (!open.add(name)) return `it has ${JSON.stringify(name.slice(0, MAX_SHOWN_NAME_LENGTH))} twice in one object`;
    } else if (code === COMMA) values += 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1;
      values += 1;
      open.enter();
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth -= 1;
      open.leave();
    } else if (code === MINUS || (code >= DIGIT_ZERO && code <= DIGIT_NINE)) {
      const number = numberAt(text, index);
      if (!isKept(number)) return 'it has a number that is too large to be kept. Send it as a string';
      index += number.length - 1;
    }
    if (depth > maxNesting) return `it is nested deeper than ${maxNesting}`;
    if (values > maxValues) return `it holds more than ${maxValues} values. Split the request`;
    if (names.size > maxNames) return `it uses more than ${maxNames} different names. Send them as the values of lists`;
  }
  return null;
}

function numberAt(text: string, index: number): string {
  NUMBER.lastIndex = index;
  return NUMBER.exec(text)?.[0] ?? '';
}

/**
 * Returns true where a number survives parsing unchanged. A whole number of 64 bits, such as an identifier, may
 * silently become another one, and would be signed wrong. Fractions are approximate by nature and stay as near as
 * JSON's usual numbers come.
 */
function isKept(number: string): boolean {
  if (number.length < MIN_LOST_NUMBER_LENGTH) return true;
  const value = Number(number);
  if (!Number.isFinite(value)) return Number.isNaN(value);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(number) || BigInt(number) === BigInt(value);
}
