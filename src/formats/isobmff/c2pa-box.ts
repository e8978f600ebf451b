import assert from 'node:assert/strict';
import { BOX_HEADER_SIZE_BYTES } from './boxes.ts';

/** The extended type of C2PA's boxes (C2PA 2.2, §A.5.1). */
export const C2PA_BOX_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');
/** Length of the extended type of a `uuid` box, in bytes (ISO/IEC 14496-12 §4.2.2). */
export const BOX_ID_SIZE_BYTES = 16;
const VERSION_AND_FLAGS_SIZE_BYTES = 4;
/** Field with the offset of the first auxiliary `uuid` box, 0 for none; only boxes with a manifest store have it. */
const MERKLE_OFFSET_SIZE_BYTES = 8;
/** Longest purpose with its terminating zero. */
const MAX_PURPOSE_SIZE_BYTES = 'manifest'.length + 1;
const MAX_COMPACT_SIZE_BYTES = 0xffff_ffff;

/** Purpose of a C2PA box: it holds a manifest store, or a fragment's position in a Merkle tree (C2PA 2.2, §A.5.1). */
export type C2paBoxPurpose = 'manifest' | 'original' | 'update' | 'merkle';

/** Number of bytes that `parseC2paBox` needs at most, counted from the extended type. */
export const C2PA_BOX_HEAD_BYTES =
  BOX_ID_SIZE_BYTES + VERSION_AND_FLAGS_SIZE_BYTES + MAX_PURPOSE_SIZE_BYTES + MERKLE_OFFSET_SIZE_BYTES;

/** Returns a complete C2PA box with a payload: a manifest store, or the CBOR of a Merkle box. */
export function c2paUuidBox(purpose: C2paBoxPurpose, payload: Uint8Array): Buffer {
  return Buffer.concat([c2paUuidBoxHead(purpose, payload.length), payload]);
}

/** Returns the bytes of a C2PA box that precede its payload. */
export function c2paUuidBoxHead(purpose: C2paBoxPurpose, payloadSizeBytes: number): Buffer {
  const header = Buffer.alloc(BOX_HEADER_SIZE_BYTES);
  const rest = Buffer.concat([
    C2PA_BOX_ID,
    Buffer.alloc(VERSION_AND_FLAGS_SIZE_BYTES),
    Buffer.from(`${purpose}\0`),
    Buffer.alloc(purpose === 'merkle' ? 0 : MERKLE_OFFSET_SIZE_BYTES),
  ]);
  const sizeBytes = header.length + rest.length + payloadSizeBytes;
  // C2PA readers do not find a manifest in a box with a 64-bit header.
  assert(sizeBytes <= MAX_COMPACT_SIZE_BYTES, 'a manifest is smaller than 4 GiB');
  header.writeUInt32BE(sizeBytes, 0);
  header.write('uuid', 4, 'latin1');
  return Buffer.concat([header, rest]);
}

/**
 * Returns the purpose of a C2PA box and the position of its payload, counted from the extended type that `head` starts
 * with. Returns undefined where `head`, at most `C2PA_BOX_HEAD_BYTES` long, belongs to another box or has an unknown
 * purpose.
 */
export function parseC2paBox(head: Buffer): { purpose: C2paBoxPurpose; payloadStart: number } | undefined {
  if (!head.subarray(0, BOX_ID_SIZE_BYTES).equals(C2PA_BOX_ID)) return undefined;
  const purposeStart = BOX_ID_SIZE_BYTES + VERSION_AND_FLAGS_SIZE_BYTES;
  const purposeEnd = head.indexOf(0, purposeStart);
  const purpose = head.toString('latin1', purposeStart, purposeEnd);
  if (purposeEnd === -1 || !isPurpose(purpose)) return undefined;
  const payloadStart = purposeEnd + 1 + (purpose === 'merkle' ? 0 : MERKLE_OFFSET_SIZE_BYTES);
  return payloadStart <= head.length ? { purpose, payloadStart } : undefined;
}

function isPurpose(text: string): text is C2paBoxPurpose {
  return text === 'manifest' || text === 'original' || text === 'update' || text === 'merkle';
}
