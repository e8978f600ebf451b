import { AppError } from '#errors/app-error.ts';
import type { PlaylistPosition } from '#errors/entry.ts';
import type { ByteRange } from '../media-part.ts';
import type { Base, FolderIndex } from './folder-index.ts';
import { MAX_ADDRESSES, MAX_MISSING_ADDRESSES, PATHS_PER_ADDRESS, refuseBeyond } from './limits.ts';
import { childrenOf, type LineIndex, type XmlElement } from './xml-element.ts';

/** Reads typed attribute values of one MPD; every refusal names the element's line. */
export class MpdValues {
  readonly path: string;
  readonly #lines: LineIndex;
  #addressCount = 0;
  #missingCount = 0;

  constructor(path: string, lines: LineIndex) {
    this.path = path;
    this.#lines = lines;
  }

  positionOf(element: XmlElement): PlaylistPosition {
    return { playlist: this.path, line: this.#lines.lineAt(element.start) };
  }

  malformed(element: XmlElement, problem: string): AppError {
    return new AppError('PLAYLIST_MALFORMED', { ...this.positionOf(element), problem });
  }

  /** Counts segments that the MPD stands for, before they are made; too many are refused. */
  countAddresses(count: number): void {
    this.#addressCount += count;
    refuseBeyond('segments that one MPD stands for', this.#addressCount, MAX_ADDRESSES);
  }

  /** Counts files that were looked for in vain; too many are refused. */
  countMissing(count: number): void {
    this.#missingCount += count;
    refuseBeyond('files that one MPD names and that are missing', this.#missingCount, MAX_MISSING_ADDRESSES);
  }

  /** Counts the search of a folder for the files that a template may name. */
  countSearch({ fileCount }: FolderIndex): void {
    this.countMissing(Math.ceil(fileCount / PATHS_PER_ADDRESS));
  }

  /** Returns an unsigned integer of up to 64 bits; times of live streams do not fit a double. */
  integer(element: XmlElement, attribute: string): bigint | undefined {
    const value = element.attributes.get(attribute);
    if (value === undefined) return undefined;
    if (!/^\d{1,20}$/.test(value)) throw this.malformed(element, `@${attribute} is no unsigned integer`);
    return BigInt(value);
  }

  /** Returns the integer of the innermost element that has the attribute. */
  inherited(elements: readonly XmlElement[], attribute: string): bigint | undefined {
    const element = elements.findLast((candidate) => candidate.attributes.has(attribute));
    return element === undefined ? undefined : this.integer(element, attribute);
  }

  /** Returns an ISO 8601 duration (xs:duration) in seconds, without years and months, whose length is open. */
  duration(element: XmlElement, attribute: string): number | undefined {
    const value = element.attributes.get(attribute);
    if (value === undefined) return undefined;
    const match = /^P(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{1,20})?)S)?)?$/.exec(
      value.replace(/^P0+Y/, 'P').replace(/^P0+M/, 'P'),
    );
    if (match === null) throw this.malformed(element, `@${attribute} is no duration`);
    const [days = 0, hours = 0, minutes = 0, seconds = 0] = match.slice(1).map((part) => Number(part ?? 0));
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
  }

  /** Returns half of the last digit of a duration in seconds, of tenths where it has none: an MPD has no need to round further. */
  rounding(element: XmlElement, attribute: string): number {
    const digits = /(?:\.(\d+))?S$/.exec(element.attributes.get(attribute) ?? '');
    return digits === null ? 0 : 0.5 / 10 ** (digits[1] ?? '0').length;
  }

  /** Returns a byte range `first-last`, both inclusive. */
  byteRange(element: XmlElement, attribute: string): ByteRange | null {
    const value = element.attributes.get(attribute);
    if (value === undefined) return null;
    const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(value) ?? [];
    if (first === undefined || Number(last) < Number(first))
      throw this.malformed(element, `@${attribute} is no byte range`);
    return { offset: Number(first), length: Number(last) - Number(first) + 1 };
  }
}

/** A number that no publication reaches, for an identifier of a template. */
export const PLACEHOLDER = '98765432109876543210';

/** Returns the files that a reference names with any text in the place of `PLACEHOLDER`, each with that text. */
export function filesLike(
  base: Base,
  reference: string,
  position: PlaylistPosition,
  index: FolderIndex,
): { readonly path: string; readonly text: string }[] {
  const [before, after] = index.pathOf(base, reference, position).split(PLACEHOLDER);
  if (before === undefined || after === undefined) return [];
  return [...index.paths]
    .filter((path) => path.startsWith(before) && path.endsWith(after))
    .map((path) => ({ path, text: path.slice(before.length, path.length - after.length) }));
}

/**
 * Returns the base for references inside `element`. Several BaseURL elements are alternatives: the first inside the
 * folder counts, unless nothing may be passed over.
 */
export function enterBaseUrl(base: Base, element: XmlElement, index: FolderIndex, values: MpdValues): Base {
  const alternatives = childrenOf(element, 'BaseURL');
  let refusal: unknown;
  for (const alternative of alternatives) {
    try {
      return index.enter(base, alternative.text, values.positionOf(alternative));
    } catch (error) {
      if (index.isComplete) throw error;
      // Another alternative may lie inside the folder; the first refusal is thrown where none does.
      refusal ??= error;
    }
  }
  if (refusal !== undefined) throw refusal;
  return base;
}
