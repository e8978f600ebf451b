import * as cborg from 'cborg';
import type { TopBox } from './top-boxes.ts';

/** The extended type of C2PA boxes in ISO BMFF (C2PA 2.2, appendix A.5). */
export const C2PA_BOX_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');

/** What a fragment says about its place in the tree (`bmff-merkle-map`'s counterpart, C2PA 2.2 §18.7). */
export interface MerkleBoxContent {
  readonly uniqueId: number;
  readonly localId: number;
  /** The fragment's position among its rendition's, counted from zero. */
  readonly location: number;
  /** The sibling hashes from the leaf upwards; null where the manifest holds the leaves themselves. */
  readonly proof: readonly Uint8Array[] | null;
}

/** Header, extended type, and four bytes of version and flags. */
const UUID_HEADER_SIZE_BYTES = 8 + 16 + 4;

/** A Merkle box: `size | uuid | id | 0 | "merkle\0" | CBOR`. */
export function merkleBox({ uniqueId, localId, location, proof }: MerkleBoxContent): Uint8Array {
  const hashes = proof === null ? null : proof.map((hash) => new Uint8Array(hash));
  return uuidBox('merkle', [cborg.encode({ uniqueId, localId, location, hashes })]);
}

/** All of a manifest box before the manifest itself: `size | uuid | id | 0 | "manifest\0" | u64 0`. */
export function manifestBoxHeader(manifestSizeBytes: number): Uint8Array {
  return uuidBox('manifest', [Buffer.alloc(8)], manifestSizeBytes);
}

function uuidBox(purpose: string, contents: readonly Uint8Array[], followingBytes = 0): Uint8Array {
  const header = Buffer.alloc(UUID_HEADER_SIZE_BYTES);
  const box = Buffer.concat([header, Buffer.from(`${purpose}\0`), ...contents]);
  box.writeUInt32BE(box.length + followingBytes, 0);
  box.write('uuid', 4, 'latin1');
  C2PA_BOX_ID.copy(box, 8);
  return box;
}

/** Whether a box is one of C2PA's, of whatever purpose. */
export function isC2paBox({ type, head, headerSizeBytes }: TopBox): boolean {
  return type === 'uuid' && head.subarray(headerSizeBytes, headerSizeBytes + 16).equals(C2PA_BOX_ID);
}

/** The manifest store inside a manifest box, as a byte range of the file, or null where the box is of another purpose. */
export function manifestIn(box: TopBox): { offset: number; length: number } | null {
  const purpose = `manifest\0`;
  const from = box.headerSizeBytes + 16 + 4;
  if (box.head.toString('latin1', from, from + purpose.length) !== purpose) return null;
  const start = from + purpose.length + 8;
  return start < box.sizeBytes ? { offset: box.offset + start, length: box.sizeBytes - start } : null;
}
