import type { IncomingHttpHeaders } from 'node:http';
import { itemAt } from '#errors/assert.ts';

/** The validators of one version of a file; null for those that the server did not send. */
export interface HttpVersion {
  readonly sizeBytes: number;
  /** Strong ones only: a weak one (`W/…`) stays the same while bytes change. */
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** A parsed `Content-Range` header (RFC 9110 §14.4): `bytes first-last/size` or `bytes *` + `/size`. */
export interface ContentRange {
  /** Null for an unsatisfied range. */
  readonly range: { readonly first: number; readonly last: number } | null;
  readonly sizeBytes: number | null;
}

/** Parses `Content-Range`. Returns null for a missing or malformed header. */
export function contentRangeOf({ 'content-range': header }: IncomingHttpHeaders): ContentRange | null {
  const match = /^bytes\s+(?:(\d{1,15})-(\d{1,15})|\*)\/(?:(\d{1,15})|\*)$/i.exec(header?.trim() ?? '');
  if (match === null) return null;
  const [, first, last, size] = match;
  const sizeBytes = size === undefined ? null : Number(size);
  if (first === undefined || last === undefined) return { range: null, sizeBytes };
  const range = { first: Number(first), last: Number(last) };
  const fits = range.first <= range.last && (sizeBytes === null || range.last < sizeBytes);
  return fits ? { range, sizeBytes } : null;
}

/** Parses `Content-Length`. Returns null for a missing or malformed header. */
export function contentLengthOf({ 'content-length': header }: IncomingHttpHeaders): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** Returns the version of the file that a response belongs to. */
export function versionOf(headers: IncomingHttpHeaders, sizeBytes: number): HttpVersion {
  const { etag, 'last-modified': lastModified } = headers;
  return {
    sizeBytes,
    etag: etag !== undefined && !etag.startsWith('W/') ? etag : null,
    lastModified: lastModified ?? null,
  };
}

/** Tells whether ranges of a file can be proven to be of one version. */
export function isPinned({ etag, lastModified }: HttpVersion): boolean {
  return etag !== null || lastModified !== null;
}

/** Tells whether two responses may be of one version: no validator that both have differs. */
export function isSameVersion(first: HttpVersion, second: HttpVersion): boolean {
  return (
    first.sizeBytes === second.sizeBytes &&
    agree(first.etag, second.etag) &&
    (first.etag !== null || agree(first.lastModified, second.lastModified))
  );
}

function agree(first: string | null, second: string | null): boolean {
  return first === null || second === null || first === second;
}

/** Returns the `If-Range` header, which makes a server answer with the whole file when the version changed (RFC 9110 §13.1.5). */
export function ifRangeHeader({ etag, lastModified }: HttpVersion): Record<string, string> {
  const validator = etag ?? lastModified;
  return validator === null ? {} : { 'if-range': validator };
}

/** Returns the media type without parameters; undefined for none. */
export function mediaTypeOf({ 'content-type': header }: IncomingHttpHeaders): string | undefined {
  const type = header?.split(';')[0]?.trim().toLowerCase();
  return type !== undefined && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : undefined;
}

/** The longest header that is looked at, in characters. */
const MAX_HEADER_LENGTH = 4096;

/**
 * Returns the file name of a Content-Disposition header, if it has one: `filename*` (RFC 8187) before `filename` (RFC
 * 6266, with RFC 2047 words and raw UTF-8, as servers send them). It is not yet safe to be used as one.
 */
export function fileNameOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined;
  const parameters = parametersOf(header);
  const extended = parameters.get('filename*');
  const decoded = extended === undefined ? undefined : decodeExtended(extended);
  return decoded ?? decodePlain(parameters.get('filename'));
}

/** Returns the parameters behind the disposition type, names in lower case; the first of each name counts. */
function parametersOf(header: string): Map<string, string> {
  const parameters = new Map<string, string>();
  const pattern = /;\s*([\w!#$&+^`|~*%'.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]*))/g;
  for (const [, name = '', quoted, bare = ''] of header.matchAll(pattern)) {
    const key = name.toLowerCase();
    if (parameters.has(key)) continue;
    parameters.set(key, quoted === undefined ? bare.trim() : quoted.replace(/\\(.)/g, '$1'));
  }
  return parameters;
}

/** Decodes `charset'language'percent-encoded` (RFC 8187 §3.2); undefined where it is malformed. */
function decodeExtended(value: string): string | undefined {
  const [, charset, encoded] = /^([\w-]+)'[\w-]*'(.*)$/.exec(value) ?? [];
  if (charset === undefined || encoded === undefined) return undefined;
  if (!/^(?:[^%]|%[0-9a-f]{2})*$/i.test(encoded)) return undefined;
  const bytes = Buffer.from(
    encoded.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16))),
    'latin1',
  );
  return decodeBytes(bytes, charset);
}

/** Decodes a header value, which arrives as bytes read as Latin-1; where these are UTF-8, that is what was meant. */
function decodePlain(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const word = /^=\?([\w-]+)\?([BQ])\?([^?]*)\?=$/i.exec(value);
  if (word !== null) return decodeWord(itemAt(word, 1), itemAt(word, 2), itemAt(word, 3));
  return decodeBytes(Buffer.from(value, 'latin1'), 'utf-8') ?? value;
}

function decodeWord(charset: string, encoding: string, text: string): string | undefined {
  if (/^B$/i.test(encoding)) return decodeBytes(Buffer.from(text, 'base64'), charset);
  const raw = text
    .replaceAll('_', ' ')
    .replace(/=([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  return decodeBytes(Buffer.from(raw, 'latin1'), charset);
}

/** Decodes bytes. Returns undefined for an unknown character set, or bytes that are invalid in it. */
function decodeBytes(bytes: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    // An unknown character set or bytes that are not of it: the header says nothing.
    return undefined;
  }
}
