import type { IncomingHttpHeaders } from 'node:http';

/** What tells one version of a file from another: as it was when the file was opened, each part null where it is not told. */
export interface HttpVersion {
  readonly sizeBytes: number;
  /** Strong ones only: a weak one (`W/…`) stays the same while bytes change. */
  readonly etag: string | null;
  readonly lastModified: string | null;
}

/** What a `Content-Range` header says (RFC 9110 §14.4): `bytes first-last/size` or `bytes *` + `/size`. */
export interface ContentRange {
  /** Null for an unsatisfied range. */
  readonly range: { readonly first: number; readonly last: number } | null;
  readonly sizeBytes: number | null;
}

/** Null where the header is missing or malformed. */
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

/** The length that an answer's headers give its body; null where they give none. */
export function contentLengthOf({ 'content-length': header }: IncomingHttpHeaders): number | null {
  return header !== undefined && /^\d{1,15}$/.test(header) ? Number(header) : null;
}

/** The version that an answer is of. */
export function versionOf(headers: IncomingHttpHeaders, sizeBytes: number): HttpVersion {
  const { etag, 'last-modified': lastModified } = headers;
  return {
    sizeBytes,
    etag: etag !== undefined && !etag.startsWith('W/') ? etag : null,
    lastModified: lastModified ?? null,
  };
}

/** Whether parts that are fetched one by one can be known to belong together. */
export function isPinned({ etag, lastModified }: HttpVersion): boolean {
  return etag !== null || lastModified !== null;
}

/** Whether two answers may be of one version: nothing that both tell differs. */
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

/** What makes a server answer with the whole file where it is no longer this version (RFC 9110 §13.1.5). */
export function ifRangeHeader({ etag, lastModified }: HttpVersion): Record<string, string> {
  const validator = etag ?? lastModified;
  return validator === null ? {} : { 'if-range': validator };
}

/** The media type without its parameters; undefined where there is none. */
export function mediaTypeOf({ 'content-type': header }: IncomingHttpHeaders): string | undefined {
  const type = header?.split(';')[0]?.trim().toLowerCase();
  return type !== undefined && /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) ? type : undefined;
}
