import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '#errors/app-error.ts';
import { receiveBody } from './receive-body.ts';
import { leaseOf } from './request-body-limit.ts';
import { unfitJson } from './unfit-json.ts';

/** Deeper bodies are refused before they are parsed. Assertions may be 100 deep, and lie a few levels down. */
const MAX_NESTING = 256;

/**
 * What a body of the largest size may hold for each value in it, names and punctuation included; an input takes twice as
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
  const problem = await unfitJson(body, { maxNesting: MAX_NESTING, maxValues, maxNames: MAX_NAMES });
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
