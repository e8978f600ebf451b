// Passes JSON data through the SDK unchanged. Its parser of numbers is fast instead of exact: it reads a quarter of the
// numbers with 17 digits as their neighbour. For nearly all of these (599 of 600) other digits can be found which it reads
// as the intended number; the rest stays off by one unit in the last place.

/** JSON text that `JSON.stringify` passes through as it is (ECMAScript's "JSON.parse source text access"). */
type RawJson = object;
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): RawJson };

/** The parser keeps a number's digits in 64 bits. */
const MAX_DIGITS_VALUE = 2n ** 64n - 1n;
/** It scales them by a power of ten from a table that ends here. */
const MAX_TABLE_EXPONENT = 308;
const MIN_EXPONENT = -4 * MAX_TABLE_EXPONENT;
/** Doubles next to the wanted digits that are tried for each power of ten. */
const NEIGHBOURS = 3;

/** A positive number as digits times a power of ten. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/** Returns the value with its numbers written so that the SDK reads them exactly; the value itself where it does so anyway. */
export function exactNumbers(value: unknown): unknown {
  if (typeof value === 'number') return exactNumber(value);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  const exact = entries.map(([key, item]) => [key, exactNumbers(item)] as const);
  if (exact.every(([, item], index) => Object.is(item, entries[index]?.[1]))) return value;
  // From entries, so that a key named "__proto__" is a key like any other.
  return Array.isArray(value) ? exact.map(([, item]) => item) : Object.fromEntries(exact);
}

function exactNumber(value: number): number | RawJson {
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? rawJSON('-0.0') : value;
  const magnitude = Math.abs(value);
  const shortest = shortestDecimal(magnitude);
  // A whole number beyond the safe ones is written with an exponent, as a double: the WASM reader refuses such integers.
  if (readAsSdk(shortest) === magnitude && shortest.exponent < 0) return value;
  const exact = readAsSdk(shortest) === magnitude ? shortest : (exactDecimal(magnitude) ?? shortest);
  return rawJSON(`${value < 0 ? '-' : ''}${exact.digits}e${exact.exponent}`);
}

function shortestDecimal(value: number): Decimal {
  const [significand = '', exponent = ''] = value.toExponential().split('e');
  const [whole = '', fraction = ''] = significand.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** Converts digits and a power of ten into a double as the SDK's parser does (serde_json without `float_roundtrip`). */
function readAsSdk({ digits, exponent }: Decimal): number {
  let value = Number(digits);
  let rest = exponent;
  for (; rest < -MAX_TABLE_EXPONENT; rest += MAX_TABLE_EXPONENT) value /= 1e308;
  return rest < 0 ? value / Number(`1e${-rest}`) : value * Number(`1e${rest}`);
}

/** Finds digits that the SDK reads as the value, over the powers of ten that its 64 bits allow; null where there are none. */
function exactDecimal(value: number): Decimal | null {
  const { digits, exponent } = shortestDecimal(value);
  for (let shift = 0; exponent - shift > MIN_EXPONENT; shift += 1) {
    const scaled = digits * 10n ** BigInt(shift);
    if (scaled > MAX_DIGITS_VALUE) return null;
    for (const candidate of neighbouringIntegers(Number(scaled))) {
      const decimal = { digits: candidate, exponent: exponent - shift };
      if (candidate <= MAX_DIGITS_VALUE && readAsSdk(decimal) === value) return decimal;
    }
  }
  return null;
}

/** Returns the doubles around an integer, which are integers where they are large. */
function neighbouringIntegers(value: number): bigint[] {
  const step = Math.max(1, 2 ** (Math.floor(Math.log2(value)) - 52));
  return Array.from({ length: 2 * NEIGHBOURS + 1 }, (_, index) => BigInt(value + (index - NEIGHBOURS) * step));
}

/** Numbers of 17 digits may be read as their neighbour (see above). */
const NEIGHBOUR = 2 ** -51;

/**
 * Tells whether data that the SDK's reader shows is the data that was given. The reader shows an array of numbers as base64,
 * which is not compared; the bytes in the manifest are right. `requireFitAssertions` limits the depth of the recursion.
 */
export function isSameData(given: unknown, read: unknown): boolean {
  if (typeof given === 'number' && typeof read === 'number') {
    return given === read || Math.abs(given - read) <= Math.abs(given) * NEIGHBOUR;
  }
  if (Array.isArray(given)) return isSameArray(given, read);
  if (typeof given !== 'object' || given === null || typeof read !== 'object' || read === null) return given === read;
  const keys = Object.keys(given);
  return (
    !Array.isArray(read) &&
    keys.length === Object.keys(read).length &&
    keys.every((key) => Object.hasOwn(read, key) && isSameData(propertyOf(given, key), propertyOf(read, key)))
  );
}

function isSameArray(given: readonly unknown[], read: unknown): boolean {
  if (!Array.isArray(read)) return typeof read === 'string' && given.every((item) => typeof item === 'number');
  return given.length === read.length && given.every((item, index) => isSameData(item, read[index]));
}

/** Reads a property. A key named "__proto__" is a key like any other. */
function propertyOf(object: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(object, key)?.value;
}
