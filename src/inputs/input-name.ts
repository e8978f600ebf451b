import { basename, extname, resolve } from 'node:path';
import { isReservedName } from '#bytes/staged-name.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { isS3Url } from '#s3/s3-address.ts';

/** The longest name in bytes of UTF-8: leaves space for an added `_c2pa` and extension (most file systems allow 255). */
export const MAX_SAFE_NAME_BYTES = 200;

/** Longest extension of a name, in bytes, dot included. */
const MAX_EXTENSION_BYTES = 32;

/**
 * Characters that are removed from names: control characters, line and paragraph separators, and marks that reverse the
 * direction of text, with which `gpj.exe` can be made to look like `exe.jpg`.
 */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu;

/**
 * Returns the name of an input, from the first candidate that leaves anything when it is made safe; `input-<index>`
 * where none does. Candidates come in this order: the hint, what the server says, the last path segment.
 */
export function inputName(candidates: readonly (string | null | undefined)[], inputIndex: number): string {
  for (const candidate of candidates) {
    const name = safeName(candidate ?? '');
    if (name !== '') return name;
  }
  return `input-${inputIndex}`;
}

/** Returns the name of an input by what its request says. The server's answer may replace it later. */
export function requestedName(input: ApiInputRef, inputIndex: number): string {
  if ('path' in input) return inputName([nameOfPath(input.path)], inputIndex);
  if (input.type === 'remote_folder_url') return inputName([folderNameOfUrl(input.url)], inputIndex);
  return inputName([input.filename_hint, nameOfUrl(input.url)], inputIndex);
}

/** Returns the last segment of a path on this host. */
export function nameOfPath(path: string): string {
  return basename(resolve(path));
}

/** Returns the last path segment of a URL, decoded once; the bucket for an `s3://bucket` root; else empty. */
export function nameOfUrl(url: string): string {
  const segment = pathOfUrl(url)
    .split('/')
    .findLast((candidate) => candidate !== '');
  return segment === undefined ? '' : decodedSegment(segment);
}

/** Decodes a segment of an address once; one with a percent sign that starts no escape is meant as it is written. */
export function decodedSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/**
 * Returns the path that an address names things by. An address of S3 is no URL: nothing in it ends the path, and the
 * bucket is part.
 */
function pathOfUrl(url: string): string {
  if (isS3Url(url)) return url.slice('s3:'.length);
  return URL.canParse(url) ? new URL(url).pathname : '';
}

/** Returns the name of the folder that a URL names: of a playlist or MPD over HTTP, the folder that it lies in. */
export function folderNameOfUrl(url: string): string {
  const isPlaylist = /^https?:/i.test(url) && /\.(?:m3u8?|mpd)$/i.test(URL.parse(url)?.pathname ?? '');
  return nameOfUrl(isPlaylist ? new URL('.', url).href : url);
}

/** Makes a name one safe path segment of at most `MAX_SAFE_NAME_BYTES`; empty where nothing is left. */
export function safeName(candidate: string): string {
  const cleaned = candidate.toWellFormed().normalize('NFC').replace(UNSAFE_CHARACTERS, '');
  const segments = cleaned.split(/[/\\]/).map((segment) => segment.trim());
  const last = segments.findLast((segment) => segment !== '') ?? '';
  if (last === '.' || last === '..') return '';
  return shortened(isReservedName(last) ? withoutDot(last) : last);
}

/** Takes from a name that belongs to the service what makes it one. */
function withoutDot(name: string): string {
  const rest = Array.from(name).slice(1).join('').trim();
  return isReservedName(rest) ? withoutDot(rest) : rest;
}

/** Cuts the stem, between characters, so that the whole fits and the extension is kept. */
function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_SAFE_NAME_BYTES) return name;
  const candidate = extname(name);
  const extension = Buffer.byteLength(candidate) <= MAX_EXTENSION_BYTES ? candidate : '';
  const limitBytes = MAX_SAFE_NAME_BYTES - Buffer.byteLength(extension);
  return cutToBytes(name.slice(0, name.length - extension.length), limitBytes).trimEnd() + extension;
}

/**
 * Returns the longest start of whole characters, as people see them, that fits; whole code points where not
 * even one fits.
 */
function cutToBytes(text: string, limitBytes: number): string {
  const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text.slice(0, limitBytes));
  const cut = takeWhileFits(
    Array.from(graphemes, ({ segment }) => segment),
    limitBytes,
  );
  return cut !== '' ? cut : takeWhileFits(Array.from(text.slice(0, limitBytes).toWellFormed()), limitBytes);
}

function takeWhileFits(parts: readonly string[], limitBytes: number): string {
  let taken = '';
  let takenBytes = 0;
  for (const part of parts) {
    takenBytes += Buffer.byteLength(part);
    if (takenBytes > limitBytes) break;
    taken += part;
  }
  return taken;
}
