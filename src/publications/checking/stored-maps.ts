import { createHash } from 'node:crypto';
import * as cborg from 'cborg';
import { z } from 'zod';
import { type JumbfBox, parseJumbf } from './jumbf.ts';

const bytes = z.instanceof(Uint8Array);
const integer = z.int().nonnegative();

const storedMap = z.object({
  uniqueId: integer,
  localId: integer,
  count: integer,
  alg: z.string(),
  initHash: bytes,
  hashes: z.array(bytes),
});
const storedBinding = z.object({ merkle: z.array(storedMap) });
const storedLocation = z.object({
  uniqueId: integer,
  localId: integer,
  location: integer,
  hashes: z.array(bytes).nullable(),
});

/** A Merkle map as a manifest holds it. */
export type StoredMap = z.infer<typeof storedMap>;

/** A Merkle box as a fragment holds it. */
export type StoredLocation = z.infer<typeof storedLocation>;

/** The Merkle maps of a store's active manifest, its last one; undefined where it has no such hard binding. */
export function readStoredMaps(store: Buffer): readonly StoredMap[] | undefined {
  const manifest = parseJumbf(store)?.children.at(-1);
  const assertions = manifest?.children.find(({ label }) => label === 'c2pa.assertions');
  const binding = assertions?.children.find(({ label }) => label === 'c2pa.hash.bmff.v3');
  return storedBinding.safeParse(decodeCbor(cborOf(binding))).data?.merkle;
}

/** What a fragment's Merkle box says; undefined where it is malformed. */
export function readStoredLocation(cbor: Uint8Array): StoredLocation | undefined {
  return storedLocation.safeParse(decodeCbor(cbor)).data;
}

/** Whether a leaf is where its Merkle box says, by the row that the map holds (C2PA 2.2, §18.7.2). */
export function isBound(leaf: Uint8Array, { location, hashes }: StoredLocation, map: StoredMap): boolean {
  if (location >= map.count) return false;
  let digest = leaf;
  let position = location;
  let length = map.count;
  const proof = [...(hashes ?? [])];
  while (length > map.hashes.length) {
    const isRight = position % 2 === 1;
    if (isRight || position + 1 < length) {
      const sibling = proof.shift();
      if (sibling === undefined) return false;
      const pair = isRight ? [sibling, digest] : [digest, sibling];
      digest = createHash(map.alg).update(Buffer.concat(pair)).digest();
    }
    position = Math.floor(position / 2);
    length = Math.ceil(length / 2);
  }
  const expected = map.hashes[position];
  return proof.length === 0 && expected !== undefined && Buffer.compare(digest, expected) === 0;
}

function cborOf(box: JumbfBox | undefined): Uint8Array {
  return box?.contents.get('cbor') ?? new Uint8Array();
}

function decodeCbor(encoded: Uint8Array): unknown {
  try {
    return cborg.decode(encoded);
  } catch {
    // Whoever asks says which file holds no readable CBOR.
    return undefined;
  }
}
