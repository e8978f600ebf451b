import { extname } from 'node:path';
import { isReservedName } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { MAX_KEY_BYTES, s3UrlOf } from '#s3/s3-address.ts';

/** Longest `prefix` or `name` and longest part between slashes, in bytes of UTF-8: the limits of Linux paths. */
const MAX_SEGMENTS_BYTES = 2048;
const MAX_SEGMENT_BYTES = 255;

/** Folders that a `prefix` or `name` may lie deep: each that has to be made waits for the disk. */
const MAX_SEGMENTS = 32;

/** An extension of a name: `.mp4`, `.php`, not `.5 final`. */
const EXTENSION = /^\.(?=.*[A-Za-z])[A-Za-z0-9]{1,8}$/;

/** The rule for the leaf of a single-file output (`output_sinks.*.naming`). */
export type Naming = 'derived' | 'in_place';

/** Ends the stem of an output that is named by the rule `derived`. */
const DERIVED_ENDING = '_c2pa';

/**
 * Returns the leaf of a single-file output: `{stem}_c2pa.{ext}`, or the input's own name. An extension that none of
 * `extensions` is (lower case, without dot, the usual one first) is replaced, and a missing one added.
 */
export function outputLeaf(
  name: string,
  extensions: readonly [string, ...string[]],
  naming: Naming,
): { readonly leaf: string; readonly warnings: readonly Warning[] } {
  const stem = stemOf(name);
  const given = name.slice(stem.length + 1);
  const fits = extensions.includes(given.toLowerCase());
  const leaf = `${stem}${naming === 'derived' ? DERIVED_ENDING : ''}.${fits ? given : extensions[0]}`;
  if (fits || given === '') return { leaf, warnings: [] };
  return { leaf, warnings: [warning('EXTENSION_REPLACED', { name, extension: extensions[0] })] };
}

/** Returns the name or path of the source by that of an output; null where that is not named by the rule `derived`. */
export function sourceNameOf(output: string): string | null {
  const stem = stemOf(output);
  return stem.endsWith(DERIVED_ENDING) ? stem.slice(0, -DERIVED_ENDING.length) + output.slice(stem.length) : null;
}

/** Returns a name without its extension. Names with different stems get different leaves, whatever their extensions. */
export function stemOf(name: string): string {
  const extension = extname(name);
  return EXTENSION.test(extension) ? name.slice(0, -extension.length) : name;
}

/**
 * Returns the folders that a request's output asks for below the base, as safe path segments; empty for none. Throws
 * for a prefix or name that is unsafe: `field` tells which.
 */
export function checkOutputSegments(output: ApiOutputSpec | null | undefined): readonly string[] {
  return [...segmentsOf(output?.prefix ?? '', 'output.prefix'), ...segmentsOf(output?.name ?? '', 'output.name')];
}

/** The output of a request that goes to S3. */
export type S3OutputSpec = Extract<ApiOutputSpec, { type: 's3' }>;

/**
 * Returns the destination in S3: `s3://bucket/base/prefix/name/leaf`. Throws `OUTPUT_SEGMENT_INVALID` for a key that
 * is too long.
 */
export function s3Destination(output: S3OutputSpec, leaf: string, basePrefix: string): string {
  const key = [...(basePrefix === '' ? [] : [basePrefix]), ...checkOutputSegments(output), leaf].join('/');
  if (Buffer.byteLength(key) <= MAX_KEY_BYTES) return s3UrlOf({ bucket: output.bucket, key });
  const problem = `with it, the key of an output is longer than the ${MAX_KEY_BYTES} bytes that S3 takes`;
  throw new AppError('OUTPUT_SEGMENT_INVALID', { field: 'output.prefix', problem }, { field: 'output.prefix' });
}

function segmentsOf(value: string, field: string): string[] {
  if (value === '/' || value === '') return [];
  const problemOfWhole = problemOfValue(value);
  // A value that is too long is not taken apart.
  const segments = problemOfWhole === undefined ? value.split('/').filter((part) => part !== '' && part !== '.') : [];
  const problem =
    problemOfWhole ?? problemOfDepth(segments) ?? segments.map(problemOfSegment).find((found) => found !== undefined);
  if (problem !== undefined) throw new AppError('OUTPUT_SEGMENT_INVALID', { field, problem }, { field });
  return segments;
}

function problemOfValue(value: string): string | undefined {
  if (value.startsWith('/')) return 'it is an absolute path';
  if (value.includes('\\')) return 'it holds a backslash';
  if (/\p{Cc}/u.test(value)) return 'it holds a control character';
  if (/\p{Bidi_Control}/u.test(value)) return 'it holds a character that reverses the direction of text';
  if (!value.isWellFormed()) return 'it is not well-formed Unicode';
  if (Buffer.byteLength(value) > MAX_SEGMENTS_BYTES) return `it is longer than ${MAX_SEGMENTS_BYTES} bytes`;
  return undefined;
}

function problemOfDepth({ length: depth }: readonly string[]): string | undefined {
  return depth > MAX_SEGMENTS ? `it has more than ${MAX_SEGMENTS} parts between its slashes` : undefined;
}

function problemOfSegment(segment: string): string | undefined {
  if (segment === '..') return 'it leads to a parent folder (..)';
  if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES) return `a part of it is longer than ${MAX_SEGMENT_BYTES} bytes`;
  if (isReservedName(segment)) return 'a part of it starts with ".attestream", a name that belongs to the service';
  return undefined;
}
