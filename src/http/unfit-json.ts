import { setImmediate } from 'node:timers/promises';

export interface JsonBounds {
  /** How deep lists and objects may lie in each other. */
  readonly maxNesting: number;
  /** How many values there may be: strings, numbers, lists, objects and the like. */
  readonly maxValues: number;
  /** How many different names the members of objects may have. */
  readonly maxNames: number;
}

/** So much of a text is looked at in one go; it takes milliseconds. */
const CHARACTERS_AT_ONCE = 256 * 1024;

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

/** A number of JSON, and what a broken text has in its place. */
const NUMBER = /[-+.\deE]+/y;

/** Shorter numbers are kept whatever they are: 15 digits always fit, and 9e99 is not too large. */
const SHORTEST_LOST_NUMBER = 5;

/**
 * Why a text should not be parsed, if it is JSON at all: it is nested too deep, holds too many values or names, or a number
 * that would not be kept. Null where none of it is so. It looks at every character once, in slices between which other work
 * goes on, and keeps nothing but names.
 */
export async function unfitJson(text: string, { maxNesting, maxValues, maxNames }: JsonBounds): Promise<string | null> {
  const names = new Set<string>();
  let depth = 0;
  let values = 1;
  let pauseAt = CHARACTERS_AT_ONCE;
  let isInString = false;
  let stringStart = 0;
  let stringEnd = 0;
  for (let index = 0; index < text.length; index += 1) {
    if (index >= pauseAt) {
      pauseAt = index + CHARACTERS_AT_ONCE;
      await setImmediate();
    }
    const code = text.charCodeAt(index);
    if (isInString) {
      // Brackets and digits in it do not count.
      if (code === BACKSLASH) index += 1;
      else if (code === QUOTE) [isInString, stringEnd] = [false, index];
    } else if (code === QUOTE) [isInString, stringStart] = [true, index + 1];
    else if (code === COLON) names.add(text.slice(stringStart, stringEnd));
    else if (code === COMMA) values += 1;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth += 1;
      values += 1;
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1;
    else if (code === MINUS || (code >= DIGIT_ZERO && code <= DIGIT_NINE)) {
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
 * Whether a number comes out of parsing as it is. A whole number of 64 bits, such as an identifier, may silently become
 * another one, and would be signed wrong. Fractions are approximate by nature and stay as near as JSON's usual numbers
 * come.
 */
function isKept(number: string): boolean {
  if (number.length < SHORTEST_LOST_NUMBER) return true;
  const value = Number(number);
  if (!Number.isFinite(value)) return Number.isNaN(value);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(number) || BigInt(number) === BigInt(value);
}
