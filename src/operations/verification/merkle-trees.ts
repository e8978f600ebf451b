import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type ByteSource, readPieces } from '#bytes/byte-source.ts';
import { buildRows, isWholeProof, rowLengths } from '#bytes/merkle-tree.ts';
import { type HashAlgorithm, knownAlgorithm } from '#bytes/splice-plan.ts';
import type { ByteRange } from '#formats/format-handler.ts';
import type { MerkleBox } from '#formats/isobmff-boxes.ts';

// Trees over the media of a single file (C2PA 2.2 §18.7.2). Readers take the place of media in a tree from Merkle boxes, which no hash
// covers, and pair trees with boxes of media by chance where there are several.

const count = z.number().int().nonnegative();
const merkleMaps = z.array(
  z.object({
    uniqueId: z.number(),
    localId: z.number(),
    count,
    alg: z.string().nullish(),
    hashes: z.array(z.instanceof(Uint8Array)),
    fixedBlockSize: count.nullish(),
    variableBlockSizes: z.array(count).nullish(),
  }),
);

type MerkleMap = z.infer<typeof merkleMaps>[number];

/** Trees of a manifest; `algorithm` is that of trees that state none. */
interface Trees {
  readonly maps: unknown;
  readonly algorithm: string;
}

/** The parts of a file that trees bind, and that tell their places. */
interface BoundFile {
  readonly source: ByteSource;
  readonly merkleBoxes: readonly MerkleBox[];
  /** Boxes of media outside of fragments. */
  readonly mediaBoxes: readonly ByteRange[];
}

/**
 * Tells whether Merkle boxes stand one behind the other in the order of the maps and of their places, each with the proof that its place
 * needs, and none is missing; and whether each of several boxes of media is that of its map. No boxes are in order as well.
 */
export async function areInPlace(
  { maps: stated, algorithm }: Trees,
  { source, merkleBoxes, mediaBoxes }: BoundFile,
  signal: AbortSignal,
): Promise<boolean> {
  const maps = merkleMaps.safeParse(stated).data ?? [];
  if (merkleBoxes.length > 0 && !areInOrder(merkleBoxes, maps)) return false;
  const isOfBlocks = maps.every((map) => map.fixedBlockSize != null || map.variableBlockSizes != null);
  if (maps.length < 2 || mediaBoxes.length !== maps.length || !isOfBlocks) return true;
  for (const [index, map] of maps.entries()) {
    const { offset, length } = mediaBoxes[index] as ByteRange;
    const media = { offset: offset + MEDIA_HEAD_BYTES, length: length - MEDIA_HEAD_BYTES };
    if (!(await isTreeOf(map, map.alg ?? algorithm, media, source, signal))) return false;
  }
  return true;
}

function areInOrder(boxes: readonly MerkleBox[], maps: readonly MerkleMap[]): boolean {
  if (maps.reduce((sum, map) => sum + map.count, 0) !== boxes.length) return false;
  let first = 0;
  return maps.every((map) => {
    const own = boxes.slice(first, first + map.count);
    first += map.count;
    return own.every(
      (box, index) =>
        box.uniqueId === map.uniqueId &&
        box.localId === map.localId &&
        box.location === index &&
        isWholeProof(box, map),
    );
  });
}

/** Bytes at the start of a box of media that are in the hash of the file (C2PA 2.2 §18.7). */
const MEDIA_HEAD_BYTES = 16;
/** Blocks of the smallest size that signers offer, 1 KiB, in a box of 1 GiB. */
const MAX_BLOCKS = 2 ** 20;

/** Tells whether a map is the tree over the blocks of a range. A tree that is too large to tell is none. */
async function isTreeOf(
  map: MerkleMap,
  stated: string,
  media: ByteRange,
  source: ByteSource,
  signal: AbortSignal,
): Promise<boolean> {
  const { hashes } = map;
  const algorithm = knownAlgorithm(stated);
  const levels = map.count > 0 ? rowLengths(map.count).indexOf(hashes.length) : -1;
  const sizes = blockSizesOf(map, media.length);
  if (levels === -1 || sizes === null || algorithm === undefined) return false;
  const leaves: Buffer[] = [];
  let at = media.offset;
  for (const size of sizes) {
    leaves.push(await hashOf(source, at, at + size, algorithm, signal));
    at += size;
  }
  return (
    buildRows(leaves, levels, algorithm)[levels]?.every((each, index) =>
      hashes[index]?.every((byte, place) => byte === each[place]),
    ) === true
  );
}

/** Returns the sizes of the blocks of a range; null where they are not as many as the map counts, or do not fill it. */
function blockSizesOf({ count, fixedBlockSize, variableBlockSizes }: MerkleMap, length: number): number[] | null {
  if (count > MAX_BLOCKS) return null;
  if (variableBlockSizes != null) {
    const isFilled = variableBlockSizes.reduce((sum, size) => sum + size, 0) === length;
    return isFilled && variableBlockSizes.length === count ? variableBlockSizes : null;
  }
  const size = fixedBlockSize ?? 0;
  if (size === 0 || Math.ceil(length / size) !== count) return null;
  return Array.from({ length: count }, (_, index) => Math.min(size, length - index * size));
}

async function hashOf(
  source: ByteSource,
  start: number,
  end: number,
  algorithm: HashAlgorithm,
  signal: AbortSignal,
): Promise<Buffer> {
  const digest = createHash(algorithm);
  for await (const piece of readPieces(source, start, end, signal)) digest.update(piece);
  return digest.digest();
}
