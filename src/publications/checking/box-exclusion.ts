import { z } from 'zod';

/** Leaves the top-level boxes of a type out of a hash, or those of them that hold certain bytes. */
export interface BoxExclusion {
  /** The 4CC. */
  readonly type: string;
  readonly sizeBytes: number | null;
  /** Bytes that a box has to hold, at offsets from its start. */
  readonly data: readonly { readonly offset: number; readonly value: Uint8Array }[];
}

/** Bytes from the start of a box that an exclusion may look at. */
const EXCLUSION_DATA_MAX_BYTES = 4096;
/** Places that an exclusion may look at; it does so in every top-level box. */
const EXCLUSION_DATA_MAX_COUNT = 64;

const integer = z.int().nonnegative();
const storedExclusion = z.strictObject({
  xpath: z.string().regex(/^\/[^/[\]]{4}$/),
  length: integer.nullish(),
  data: z
    .array(z.object({ offset: integer, value: z.instanceof(Uint8Array) }))
    .max(EXCLUSION_DATA_MAX_COUNT)
    .nullish(),
  subset: z.null().optional(),
  version: z.null().optional(),
  flags: z.null().optional(),
  exact: z.boolean().nullish(),
});

/** Reads an exclusion of a BMFF hash (C2PA 2.2, §18.7); undefined where it is of another kind, such as of parts of a box. */
export function readBoxExclusion(stored: unknown): BoxExclusion | undefined {
  const { data: read } = storedExclusion.safeParse(stored);
  if (read === undefined) return undefined;
  const data = read.data ?? [];
  if (data.some(({ offset, value }) => offset + value.length > EXCLUSION_DATA_MAX_BYTES)) return undefined;
  return { type: read.xpath.slice(1), sizeBytes: read.length ?? null, data };
}

/** Whether a box is left out. `head` begins with it, and reaches as far as exclusions look where the file does. */
export function isExcluded(
  type: string,
  sizeBytes: number,
  head: Buffer,
  exclusions: readonly BoxExclusion[],
): boolean {
  return exclusions.some(
    (exclusion) =>
      exclusion.type === type &&
      (exclusion.sizeBytes === null || exclusion.sizeBytes === sizeBytes) &&
      exclusion.data.every(({ offset, value }) => head.subarray(offset, offset + value.length).equals(value)),
  );
}
