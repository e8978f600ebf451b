import * as cborg from 'cborg';
import { C2PA_BOX_HEAD_BYTES, C2PA_BOX_ID, c2paUuidBox, parseC2paBox } from '#formats/isobmff/c2pa-box.ts';
import type { ByteRange } from '../publication.ts';
import type { TopBox } from './top-boxes.ts';

/** What a fragment says about its place in the tree (C2PA 2.2, §18.7). */
export interface MerkleBoxContent {
  readonly uniqueId: number;
  readonly localId: number;
  /** The fragment's position among its rendition's, counted from zero. */
  readonly location: number;
  /** The sibling hashes from the leaf upwards; null where the manifest holds the leaves themselves. */
  readonly proof: readonly Uint8Array[] | null;
}

/** The Merkle box of a fragment. */
export function merkleBox({ uniqueId, localId, location, proof }: MerkleBoxContent): Uint8Array {
  const hashes = proof === null ? null : proof.map((hash) => new Uint8Array(hash));
  return c2paUuidBox('merkle', cborg.encode({ uniqueId, localId, location, hashes }));
}

/** Whether a box is one of C2PA's, of whatever purpose. */
export function isC2paBox(box: TopBox): boolean {
  return box.type === 'uuid' && fromId(box).subarray(0, C2PA_BOX_ID.length).equals(C2PA_BOX_ID);
}

/** The manifest store inside a manifest box, as a byte range of the file, or null where the box is of another purpose. */
export function manifestIn(box: TopBox): ByteRange | null {
  const parsed = parseC2paBox(fromId(box));
  if (parsed?.purpose !== 'manifest') return null;
  const start = box.headerSizeBytes + parsed.payloadStart;
  return start < box.sizeBytes ? { offset: box.offset + start, length: box.sizeBytes - start } : null;
}

/** The beginning of a uuid box from its extended type on. */
function fromId({ head, headerSizeBytes }: TopBox): Buffer {
  return head.subarray(headerSizeBytes, headerSizeBytes + C2PA_BOX_HEAD_BYTES);
}
