import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type ByteSource, readPieces } from '#bytes/byte-source.ts';
import { knownAlgorithm } from '#bytes/splice-plan.ts';
import type { ByteRange } from '#formats/format-handler.ts';
import { partBoundaries } from '#formats/part-boundaries.ts';

// A manifest may hold hashes of the parts of a picture (C2PA 2.2 §18.6). The readers compare them, and not what stands behind the last
// part of the list.

export const hashedParts = z.object({
  boxes: z.array(
    z.object({
      names: z.array(z.string()),
      alg: z.string().nullish(),
      hash: z.instanceof(Uint8Array),
      excluded: z.boolean().nullish(),
    }),
  ),
});

/** The hashes of a picture; `algorithm` is that of hashes that state none. */
export interface HashedParts {
  readonly parts: z.infer<typeof hashedParts>['boxes'];
  readonly algorithm: string;
}

/** The name of the part with the manifest, which has no hash. */
const MANIFEST_PART = 'C2PA';
/** The name of the first eight bytes of PNG, which are always the same, and which a list may leave out. */
const PNG_HEADER = 'PNGh';
/** Ends of parts that are tried: as many as a JPEG of 64 MiB has bytes that may begin a segment. */
const MAX_BOUNDARIES = 2 ** 18;

/**
 * Tells whether hashes cover a picture but for the element of its manifest: `whole`; `begun` where they cover all before an offset, and
 * nothing behind it; `unknown` where it cannot be found out here, or where they leave out more.
 */
export async function coverageOf(
  { parts, algorithm: common }: HashedParts,
  { source, mediaType, element }: { source: ByteSource; mediaType: string; element: ByteRange | undefined },
  signal: AbortSignal,
): Promise<'whole' | 'begun' | 'unknown'> {
  const boundaries = partBoundaries(source, mediaType, signal);
  if (boundaries === null) return 'unknown';
  let count = 0;
  let at = mediaType === 'image/png' && parts[0]?.names[0] !== PNG_HEADER ? 8 : 0;
  for (const { names, alg, hash, excluded } of parts) {
    if (names.length === 1 && names[0] === MANIFEST_PART && element?.offset === at) {
      at += element.length;
      continue;
    }
    const algorithm = knownAlgorithm(alg ?? common);
    if (excluded === true || algorithm === undefined) return 'unknown';
    const digest = createHash(algorithm);
    for (let isFound = false; !isFound; ) {
      const { value: end, done } = await boundaries.next();
      count += 1;
      if (done === true || end > source.sizeBytes || count > MAX_BOUNDARIES) return 'unknown';
      if (end <= at) continue;
      for await (const piece of readPieces(source, at, end, signal)) digest.update(piece);
      at = end;
      isFound = digest.copy().digest().equals(hash);
    }
  }
  return at === source.sizeBytes ? 'whole' : 'begun';
}
