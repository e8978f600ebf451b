import assert from 'node:assert/strict';
import * as cborg from 'cborg';
import { encodedLength } from 'cborg/length';
import { buildRows, proofLength, proofOf, rowLengths } from '#bytes/merkle-tree.ts';
import { itemAt } from '#errors/assert.ts';
import type { HardBinding } from '#formats/hard-binding.ts';
import { BMFF_HASH_ALGORITHM, bmffHash, c2paUuidBox, type MerkleBox } from '#formats/isobmff-boxes.ts';

/** Length of a digest in bytes. */
const DIGEST_SIZE_BYTES = 32;

/** The size of a rendition, known before anything is hashed. */
export interface RenditionSize {
  /** `track_ID` of its first track. */
  readonly firstTrackId: number;
  readonly fragmentCount: number;
}

/** One Merkle map: which row of a rendition's tree the manifest holds, and so how long its fragments' proofs are. */
export interface MapPlan {
  readonly uniqueId: number;
  /** The track's id, as the specification asks; `uniqueId` tells apart what shares one. */
  readonly localId: number;
  readonly count: number;
  /** Levels between the leaves and the row in the manifest; 0 where that is the leaf row itself. */
  readonly levels: number;
}

/** A map of which it is not known yet how many fragments there will be. */
export type OpenMap = Omit<MapPlan, 'count'>;

/** Digests of a rendition. */
interface RenditionDigests {
  readonly initHash: Uint8Array;
  /** Of the fragments, in playback order. */
  readonly leaves: readonly Uint8Array[];
}

/**
 * The manifest stays below the first of these that up to `MAX_PROOF_LEVELS` levels can do: it is in every init segment,
 * before the moov. In HLS and DASH, ffmpeg (5.1 to 7.1, as far as is known) finds no moov that lies behind the first 32 KiB.
 */
export const SMALL_MANIFEST_BYTES = 28 * 1024;
const LARGE_MANIFEST_BYTES = 64 * 1024;
/** Each level halves the manifest's rows and adds a hash to every fragment. */
const MAX_PROOF_LEVELS = 5;
/** A digest in CBOR: the bytes and a head of two. */
const ROW_ENTRY_BYTES = DIGEST_SIZE_BYTES + 2;

/**
 * Plans one map per rendition. All hold their leaf row where that fits beside the rest of the manifest, which makes
 * `restOfManifestBytes`; else the longest row goes up a level, and so on until it fits or every proof is at its longest.
 */
export function planMaps(renditions: readonly RenditionSize[], restOfManifestBytes: number): MapPlan[] {
  const rows = renditions.map(({ fragmentCount }) => ({ lengths: rowLengths(fragmentCount), levels: 0 }));
  type Row = (typeof rows)[number];
  const lengthOf = ({ lengths, levels }: Row): number => lengths[levels] ?? 1;
  const totalOf = (length: (row: Row) => number): number =>
    rows.reduce((sum, row) => sum + length(row) * ROW_ENTRY_BYTES, restOfManifestBytes);
  const leastBytes = totalOf(({ lengths }) => lengths[Math.min(MAX_PROOF_LEVELS, lengths.length - 1)] ?? 1);
  const targetBytes = leastBytes < SMALL_MANIFEST_BYTES ? SMALL_MANIFEST_BYTES : LARGE_MANIFEST_BYTES;
  for (;;) {
    const total = totalOf(lengthOf);
    const [longest] = rows
      .filter(({ levels, lengths }) => levels < MAX_PROOF_LEVELS && levels < lengths.length - 1)
      .sort((first, second) => lengthOf(second) - lengthOf(first));
    if (total < targetBytes || longest === undefined) break;
    longest.levels += 1;
  }
  return renditions.map(({ firstTrackId, fragmentCount }, index) => ({
    uniqueId: index + 1,
    localId: firstTrackId,
    count: fragmentCount,
    levels: rows[index]?.levels ?? 0,
  }));
}

/** Sizes of a rendition's Merkle boxes by the fragment's position; every value but the hashes is known beforehand. */
export function merkleBoxSizes(plan: MapPlan): (location: number) => number {
  const placeholder = new Uint8Array(DIGEST_SIZE_BYTES);
  // Beside the location, whose CBOR grows with it, the size depends on the length of the proof alone.
  const sizes = new Map<number, number>();
  return (location) => {
    const length = proofLength(plan.count, location, plan.levels);
    let sizeAtStart = sizes.get(length);
    if (sizeAtStart === undefined) {
      const hashes = Array<Uint8Array>(length).fill(placeholder);
      sizeAtStart = merkleBox({ ...plan, location: 0, hashes }).length;
      sizes.set(length, sizeAtStart);
    }
    return sizeAtStart + encodedLength(location) - encodedLength(0);
  };
}

/** Returns the publication's hard binding (C2PA 2.2, §18.7): one assertion, the same in every init segment. */
export function bindPublication(plans: readonly MapPlan[], digests: readonly RenditionDigests[]): HardBinding {
  const maps = plans.map((plan, index) => {
    const { initHash, leaves } = itemAt(digests, index);
    assert.equal(leaves.length, plan.count, 'every fragment has a leaf');
    return mapOf(plan, initHash, itemAt(buildRows(leaves, plan.levels, BMFF_HASH_ALGORITHM), plan.levels));
  });
  return bmffHash(null, maps);
}

/** Returns a binding of exactly the final size, for measuring. */
export function placeholderBinding(plans: readonly MapPlan[]): HardBinding {
  // A byte above 23 takes two bytes in CBOR where it is taken for a number, so that no encoding is underestimated.
  const digest = new Uint8Array(DIGEST_SIZE_BYTES).fill(0xff);
  return bmffHash(
    null,
    plans.map((plan) => mapOf(plan, digest, Array(rowLengths(plan.count)[plan.levels] ?? 1).fill(digest))),
  );
}

function mapOf({ uniqueId, localId, count }: MapPlan, initHash: Uint8Array, row: readonly Uint8Array[]): object {
  const hashes = row.map((hash) => [...hash]);
  return { uniqueId, localId, count, alg: BMFF_HASH_ALGORITHM, initHash: [...initHash], hashes };
}

/** Returns the size of the rows of the maps in a manifest, in bytes: digests and their CBOR heads alone. */
export function manifestRowsSizeBytes(plans: readonly MapPlan[]): number {
  return plans.reduce((sum, { count, levels }) => sum + (rowLengths(count)[levels] ?? 1) * ROW_ENTRY_BYTES, 0);
}

/**
 * Returns the Merkle boxes of neighbouring fragments, from their leaves alone. `first`, the position of the first of
 * them, and their count are multiples of 2^levels (the last group of a rendition may be shorter): their proofs then
 * hold no other leaf.
 */
export function merkleBoxesOf(plan: OpenMap, first: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  assert.equal(first % 2 ** plan.levels, 0, 'a group begins where a node of the row in the manifest does');
  const { levels } = plan;
  const rows = buildRows(leaves, levels, BMFF_HASH_ALGORITHM);
  return leaves.map((_leaf, index) =>
    merkleBox({ ...plan, location: first + index, hashes: proofOf(rows, index, levels) }),
  );
}

/**
 * Returns the Merkle box of a fragment. A proof of no digests is left out (C2PA 2.2, §A.5.4: `? "hashes": [1* bstr]`): the manifest
 * holds the leaf then, or a node that it became by itself.
 */
function merkleBox({ uniqueId, localId, location, hashes: proof }: MerkleBox): Uint8Array {
  const hashes = proof.map((hash) => new Uint8Array(hash));
  const content = { uniqueId, localId, location, ...(hashes.length > 0 && { hashes }) };
  return c2paUuidBox('merkle', cborg.encode(content));
}
