import type { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '#errors/app-error.ts';
import { leaseOf, receiveBody } from './body-limits.ts';

/** Deeper bodies are refused before they are parsed. Assertions may be 100 deep, and lie a few levels down. */
const MAX_NESTING = 256;

/**
 * The least bytes of the largest body for each value in it, names and punctuation included; an input takes twice as
 * much. A body of nothing but `{}` would take a hundred times its size as objects, and hold the thread for seconds.
 */
const MIN_BYTES_PER_VALUE = 16;

/** The parser keeps every name in a table of its own; half a million of them held the thread for up to a second, these for 0.1 s. */
const MAX_NAMES = 100_000;

/**
 * Takes JSON bodies and nothing else, of at most `maxBodyBytes`. JSON is UTF-8 (RFC 8259 §8.1); bytes that are not would
 * become other characters in a path or an assertion, so they are refused instead of replaced.
 */
export function takeJsonBodies(app: FastifyInstance, maxBodyBytes: number): void {
  const maxValues = Math.ceil(maxBodyBytes / MIN_BYTES_PER_VALUE);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    const { 'content-encoding': coding, 'content-length': length = '0' } = request.headers;
    const bounds = { announcedBytes: Number(length), maxBytes: maxBodyBytes, lease: leaseOf(request) };
    const body = await receiveBody(payload, bounds);
    refuseEncoding(coding);
    return await parseJson(decodeUtf8(body), maxValues);
  });
}

/** A small body could unfold to any size, so none is unfolded (415: RFC 9110 §15.5.16). */
function refuseEncoding(coding: string | undefined): void {
  const isPlain = coding === undefined || /^\s*(identity)?\s*$/i.test(coding);
  if (!isPlain) throw new AppError('BODY_ENCODING_UNSUPPORTED', {});
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch (cause) {
    throw new AppError('REQUEST_NOT_JSON', { problem: 'it is not UTF-8' }, { cause });
  }
}

async function parseJson(body: string, maxValues: number): Promise<unknown> {
  if (body.trim() === '') throw new AppError('REQUEST_NOT_JSON', { problem: 'it is empty' });
  const problem = await jsonProblem(body, { maxNesting: MAX_NESTING, maxValues, maxNames: MAX_NAMES });
  if (problem !== null) throw new AppError('REQUEST_NOT_JSON', { problem });
  try {
    return JSON.parse(body);
  } catch (cause) {
    throw new AppError('REQUEST_NOT_JSON', { problem: syntaxProblem(cause as SyntaxError) }, { cause });
  }
}

/** The place of a syntax error; the engine's message may also quote the body, which may hold a presigned URL. */
function syntaxProblem({ message }: SyntaxError): string {
  const place = /\(line \d+ column \d+\)/.exec(message)?.[0];
  const token = /^Unexpected token '.{1,2}'/u.exec(message)?.[0];
  if (place !== undefined) return `it has a syntax error ${place}`;
  return token === undefined ? 'it ends too early or is not JSON at all' : `it has an ${token.toLowerCase()}`;
}

export interface JsonLimits {
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

/** A number of JSON, and what a broken text has in its place. */
const NUMBER = /[-+.\deE]+/y;

/** Shorter numbers are kept whatever they are: 15 digits always fit, and 9e99 is not too large. */
const SHORTEST_LOST_NUMBER = 5;

/**
 * Why a text should not be parsed, if it is JSON at all: it is nested too deep, holds too many values or names, or a number
 * that would not be kept. Null where none of it is so. It looks at every character once, in slices between which other work
 * goes on, and keeps nothing but names.
 */
export async function jsonProblem(
  text: string,
  { maxNesting, maxValues, maxNames }: JsonLimits,
): Promise<string | null> {
  const names = new Set<string>();
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
 * Returns true where a number survives parsing unchanged. A whole number of 64 bits, such as an identifier, may silently become
 * another one, and would be signed wrong. Fractions are approximate by nature and stay as near as JSON's usual numbers
 * come.
 */
function isKept(number: string): boolean {
  if (number.length < SHORTEST_LOST_NUMBER) return true;
  const value = Number(number);
  if (!Number.isFinite(value)) return Number.isNaN(value);
  return Number.isSafeInteger(value) || !/^-?\d+$/.test(number) || BigInt(number) === BigInt(value);
}
