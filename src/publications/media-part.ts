import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import type { ByteRange } from '#formats/format-handler.ts';

export type { ByteRange };

/** An init segment or a fragment as it is stored in the folder: a whole file where `range` is null, else a part of one. */
export interface MediaPart {
  readonly path: string;
  readonly range: ByteRange | null;
}

/** One init segment and the fragments that belong to it, in playback order. */
export interface Rendition {
  readonly init: MediaPart;
  readonly fragments: readonly MediaPart[];
}

/** Returns a key that is equal exactly for equal parts. */
export function partKey({ path, range }: MediaPart): string {
  return range === null ? path : `${path}\0${range.offset}+${range.length}`;
}

/** Returns the byte range of a part in its file. */
export function rangeOf({ range }: MediaPart, { sizeBytes }: Pick<ByteSource, 'sizeBytes'>): ByteRange {
  return range ?? { offset: 0, length: sizeBytes };
}

/** Describes a part for messages: its path, and its byte range where it has one. */
export function describePart({ path, range }: MediaPart): string {
  return range === null ? path : `${path} (bytes ${range.offset}-${range.offset + range.length - 1})`;
}

/** Returns the parts of renditions, the init segment of each first. */
export function partsIn(renditions: readonly Rendition[]): MediaPart[] {
  return renditions.flatMap(({ init, fragments }) => [init, ...fragments]);
}

/** Returns the file that all parts are byte ranges of, or null: its manifest may bind it as a whole. */
export function singleFileOf(renditions: readonly Rendition[]): string | null {
  const parts = partsIn(renditions);
  const [first] = parts;
  const isOne = parts.every(({ path, range }) => range !== null && path === first?.path);
  return isOne && first !== undefined ? first.path : null;
}

/** The official reader holds an init segment and a fragment in memory; larger ones are verified by our own engine alone. */
export const MAX_READ_PART_BYTES = 64 * 1024 * 1024;

/** Reads a part into memory for the official reader; null where it has more than `maxBytes`. */
export async function readPart(
  folder: Pick<SourceFolder, 'open'>,
  part: MediaPart,
  signal: AbortSignal,
  maxBytes = MAX_READ_PART_BYTES,
): Promise<Buffer | null> {
  return await withSource(folder, part, signal, async (source) => {
    const { offset, length } = rangeOf(part, source);
    return length > maxBytes ? null : await readRange(source, offset, length, signal);
  });
}
