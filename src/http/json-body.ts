import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** Deeper bodies are refused before they are parsed. Assertions may be 100 deep, and lie a few levels down. */
const MAX_NESTING = 256;

/** Only bodies that match can hold a whole number beyond 2^53 or one without end; reading them costs a little more. */
const MAY_LOSE_NUMBERS = /\d{16}|\d[eE]\+?\d{3}/;

/**
 * Takes JSON bodies and nothing else. JSON is UTF-8 (RFC 8259 §8.1); bytes that are not would become other characters
 * in a path or an assertion, so they are refused instead of replaced.
 */
export function takeJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    refuseEncoding(request.headers['content-encoding']);
    return parseJson(decodeUtf8(body));
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

function parseJson(body: string): unknown {
  if (body.trim() === '') throw new AppError('REQUEST_NOT_JSON', { problem: 'it is empty' });
  if (isNestedTooDeep(body))
    throw new AppError('REQUEST_NOT_JSON', { problem: `it is nested deeper than ${MAX_NESTING}` });
  try {
    return MAY_LOSE_NUMBERS.test(body) ? JSON.parse(body, keepNumber as Reviver) : JSON.parse(body);
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError('REQUEST_NOT_JSON', { problem: syntaxProblem(cause as SyntaxError) }, { cause });
  }
}

/** What the type library knows of a reviver: not yet that it is given the source text. */
type Reviver = (key: string, value: unknown) => unknown;

/**
 * Refuses a number that would silently become another one, such as an identifier of 64 bits: it would be signed wrong.
 * Fractions are approximate by nature and stay as near as JSON's usual numbers come.
 */
function keepNumber(_key: string, value: unknown, { source }: { source: string }): unknown {
  if (typeof value !== 'number') return value;
  const kept = Number.isFinite(value) && (!/^-?\d+$/.test(source) || BigInt(source) === BigInt(value));
  if (!kept)
    throw new AppError('REQUEST_NOT_JSON', {
      problem: 'it has a number that is too large to be kept. Send it as a string',
    });
  return value;
}

/** The place of a syntax error; the engine's message may also quote the body, which may hold a presigned URL. */
function syntaxProblem({ message }: SyntaxError): string {
  const place = /\(line \d+ column \d+\)/.exec(message)?.[0];
  const token = /^Unexpected token '.{1,2}'/u.exec(message)?.[0];
  if (place !== undefined) return `it has a syntax error ${place}`;
  return token === undefined ? 'it ends too early or is not JSON at all' : `it has an ${token.toLowerCase()}`;
}

/** Whether lists and objects lie in each other deeper than the bound; brackets inside strings do not count. */
function isNestedTooDeep(body: string): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < body.length; index += 1) {
    const character = body[index];
    if (inString) {
      if (character === '\\') index += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth > MAX_NESTING) return true;
  }
  return false;
}
