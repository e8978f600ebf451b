import { hash } from 'node:crypto';
import { z } from 'zod';
import { isWholeProof, rowLengths } from '#bytes/merkle-tree.ts';
import { type HashAlgorithm, knownAlgorithm } from '#bytes/splice-plan.ts';
import type { MerkleBox } from '#formats/isobmff-boxes.ts';
import { decodeCbor, type JumbfBox, onlyCbor } from '#provenance/jumbf.ts';
import { activeManifestOf } from './stored-claim.ts';

/** The binding of a publication's active manifest to its init segments and fragments. */
export interface StoredBinding {
  /** Equal for copies of one manifest, whatever differs in bytes that nobody signed. Anybody can give a manifest the label of another one. */
  readonly id: string;
  /** The label of the manifest, and that of the assertion in it. */
  readonly manifest: string;
  readonly assertion: string;
  readonly algorithm: HashAlgorithm;
  /** True when the offset of a box is hashed before the box (since `c2pa.hash.bmff.v2`). */
  readonly hashesOffsets: boolean;
  readonly exclusions: readonly BoxExclusion[];
  readonly maps: readonly StoredMap[];
}

/** A Merkle map as a manifest holds it. */
export interface StoredMap {
  readonly uniqueId: number;
  readonly localId: number;
  /** The number of fragments that it binds. */
  readonly count: number;
  readonly initHash: Uint8Array;
  /** A row of the tree over the fragments: as long as one of `rowLengths(count)`. */
  readonly hashes: readonly Uint8Array[];
}

/** Why a binding cannot be verified here; the official reader may know more. */
export interface UnknownBinding {
  readonly problem: string;
  /** True where bytes that nobody signed are the cause: anybody can have added them. */
  readonly isDisturbed: boolean;
}

const bytes = z.instanceof(Uint8Array);
const integer = z.int().nonnegative();

/** Maps of one manifest, one for each rendition. */
const MAX_MAPS = 1000;

const storedBinding = z.object({
  alg: z.string().nullish(),
  hash: z.null().optional(),
  exclusions: z.array(z.unknown()).min(1).max(64),
  merkle: z
    .array(
      z.object({
        uniqueId: integer,
        localId: integer,
        count: integer,
        alg: z.string().nullish(),
        initHash: bytes,
        hashes: z.array(bytes),
        fixedBlockSize: z.null().optional(),
        variableBlockSizes: z.null().optional(),
      }),
    )
    .min(1)
    .max(MAX_MAPS),
});
/** Hard bindings of ISO base media files by their version. The first one leaves the positions of boxes out. */
const BINDING_LABEL = /^c2pa\.hash\.bmff(?:\.v([23]))?$/;
const DIGEST_SIZES_BYTES: Readonly<Record<HashAlgorithm, number>> = { sha256: 32, sha384: 48, sha512: 64 };

/**
 * Reads the Merkle maps of a store's active manifest, its last one. They count only where the claim, which is signed,
 * has the hash of the bytes that they are read from; whether it is signed by whom it says is the official reader's to find.
 */
export function readStoredBinding(store: Buffer): StoredBinding | UnknownBinding {
  const manifest = activeManifestOf(store);
  if (manifest === undefined) return { problem: 'its manifest store cannot be read', isDisturbed: true };
  const { claim } = manifest;
  if (claim === undefined)
    return { problem: 'its claim does not hold the hashes of its assertions', isDisturbed: true };
  const [assertion, ...others] = manifest.assertions.filter(({ label }) => label.startsWith('c2pa.hash.'));
  const version = BINDING_LABEL.exec(assertion?.label ?? '');
  if (assertion === undefined || version === null || others.length > 0) {
    return unknown('its manifest has not exactly one binding of fragments');
  }
  return readBinding(assertion, claim.alg ?? undefined, {
    id: manifest.claimDigest,
    manifest: manifest.label,
    assertion: assertion.label,
    hashesOffsets: version[1] !== undefined,
  });
}

function unknown(problem: string): UnknownBinding {
  return { problem, isDisturbed: false };
}

function readBinding(
  assertion: JumbfBox,
  claimed: string | undefined,
  common: Pick<StoredBinding, 'id' | 'manifest' | 'assertion' | 'hashesOffsets'>,
): StoredBinding | UnknownBinding {
  const { data } = storedBinding.safeParse(decodeCbor(onlyCbor(assertion)));
  if (data === undefined) return unknown('its manifest binds no fragments, or in a way that is not known');
  const named = new Set(data.merkle.map(({ alg }) => alg ?? data.alg ?? claimed ?? 'sha256'));
  const [algorithm, ...others] = [...named].map(knownAlgorithm);
  if (algorithm === undefined || others.length > 0) return unknown('its hash algorithm is not known');
  const exclusions = data.exclusions.map(readBoxExclusion);
  if (!exclusions.every((exclusion) => exclusion !== undefined)) {
    return unknown('its binding leaves out parts of boxes');
  }
  const isWhole = data.merkle.every(
    (map) => holdsRow(map) && map.hashes.every(({ length }) => length === DIGEST_SIZES_BYTES[algorithm]),
  );
  const ids = new Set(data.merkle.map(({ uniqueId, localId }) => `${uniqueId} ${localId}`));
  if (!isWhole || ids.size < data.merkle.length) return unknown('its Merkle maps cannot be read');
  return { ...common, algorithm, exclusions, maps: data.merkle };
}

/** Fragments that one map may bind; more than a folder may hold files. */
const MAX_MAP_FRAGMENTS = 2 ** 24;

/** Returns true when a map holds a row of a tree with `count` leaves. */
function holdsRow({ count, hashes }: Pick<StoredMap, 'count' | 'hashes'>): boolean {
  return count >= 1 && count <= MAX_MAP_FRAGMENTS && rowLengths(count).includes(hashes.length);
}

/** Verifies a leaf at the location in its Merkle box by the row that the map holds (C2PA 2.2, §18.7.2). */
export function isBound(
  leaf: Uint8Array,
  stored: MerkleBox,
  map: Pick<StoredMap, 'count' | 'hashes'>,
  algorithm: HashAlgorithm,
): boolean {
  if (!isWholeProof(stored, map)) return false;
  const siblings = stored.hashes.values();
  let digest = leaf;
  let position = stored.location;
  for (let length = map.count; length > 1 && length !== map.hashes.length; length = Math.ceil(length / 2)) {
    const isRight = position % 2 === 1;
    if (isRight || position + 1 < length) {
      const sibling = siblings.next().value as Uint8Array;
      const [left, right] = isRight ? [sibling, digest] : [digest, sibling];
      digest = hash(algorithm, Buffer.concat([left, right]), 'buffer');
    }
    position = Math.floor(position / 2);
  }
  const expected = map.hashes[position];
  return expected !== undefined && Buffer.compare(digest, expected) === 0;
}

/** Leaves the top-level boxes of a type out of a hash, or those of them that hold certain bytes. */
interface BoxExclusion {
  /** The 4CC. */
  readonly type: string;
  readonly sizeBytes: number | null;
  /** Bytes that a box has to hold, at offsets from its start. */
  readonly data: readonly { readonly offset: number; readonly value: Uint8Array }[];
}

/** Bytes from the start of a box that an exclusion may look at. */
const MAX_EXCLUSION_DATA_BYTES = 4096;
/** Places that an exclusion may look at; it does so in every top-level box. */
const MAX_EXCLUSION_DATA_COUNT = 64;

const storedExclusion = z.strictObject({
  xpath: z.string().regex(/^\/[^/[\]]{4}$/),
  length: integer.nullish(),
  data: z
    .array(z.object({ offset: integer, value: bytes }))
    .max(MAX_EXCLUSION_DATA_COUNT)
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
  if (data.some(({ offset, value }) => offset + value.length > MAX_EXCLUSION_DATA_BYTES)) return undefined;
  return { type: read.xpath.slice(1), sizeBytes: read.length ?? null, data };
}

/** Returns true when a box is excluded. `head` holds the first bytes of the box, as many as exclusions look at. */
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
