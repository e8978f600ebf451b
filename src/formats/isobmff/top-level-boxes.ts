import assert from 'node:assert/strict';
import type { ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  type BoxHeader,
  fitsInto,
  MAX_BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  requireFit,
} from './boxes.ts';

/** Largest number of top-level boxes: some 100,000 fragments, or a day of low-latency streaming. */
const MAX_TOP_LEVEL_BOXES = 500_000;
/** Largest number of bytes behind the last box that count as appended data rather than as a damaged box. */
const MAX_TAIL_SIZE_BYTES = 1024 * 1024;

/**
 * Largest number of bytes by which the last `mdat` box may exceed the file: some programs count its header or its
 * padding twice. A file that lacks more is taken to be truncated.
 */
const MAX_MISSING_MEDIA_BYTES = 64;

/** Known types of top-level boxes. One of these that exceeds the file is truncated; another type is appended data. */
const KNOWN_TYPES = new Set(
  'ftyp styp moov mdat moof mfra uuid meta meco sidx ssix emsg prft pdin pnot PICT'.split(' '),
);

/** Box directly in the file. */
export interface TopLevelBox extends BoxHeader {
  /** Extended type of a `uuid` box in hexadecimal; null for other boxes. */
  readonly boxId: string | null;
  /** Size in the header where it exceeds the file; `sizeBytes` then ends with the file. */
  readonly overstatedBytes?: number;
}

/** Top level of a file. */
export interface TopLevelBoxes {
  readonly boxes: readonly TopLevelBox[];
  /** Bytes behind the last box that are not a box; usually of length 0. */
  readonly tail: { readonly offset: number; readonly length: number };
}

/**
 * Walks the top-level boxes in file order and calls `visit` with each. Throws `BMFF_BOX_SIZE_INVALID`,
 * `BMFF_BOX_EXCEEDS_PARENT` or `BMFF_TOO_MANY_BOXES`.
 */
export async function walkTopLevelBoxes(
  source: ByteSource,
  window: ReadWindow,
  visit: (box: TopLevelBox) => Promise<void> | undefined,
): Promise<TopLevelBoxes> {
  const file = { fileName: source.name, type: 'file', endOffset: source.sizeBytes };
  const boxes: TopLevelBox[] = [];
  const seen = new Set<string>();
  let offset = 0;
  // Up to 7 bytes cannot be a box; C2PA readers hash them as they are.
  while (offset + BOX_HEADER_SIZE_BYTES <= source.sizeBytes) {
    const headSizeBytes = Math.min(MAX_BOX_HEADER_SIZE_BYTES + BOX_ID_SIZE_BYTES, source.sizeBytes - offset);
    const head = window.buffered(offset, headSizeBytes) ?? (await window.read(offset, headSizeBytes));
    const box = withinFile(parseFileBox(head, offset, source.sizeBytes), source, seen);
    if (!fitsInto(box, source.sizeBytes) && isTail(box, source, seen)) break;
    requireFit(box, file);
    if (boxes.length === MAX_TOP_LEVEL_BOXES) {
      throw new AppError('BMFF_TOO_MANY_BOXES', { name: source.name, offset, maxBoxes: MAX_TOP_LEVEL_BOXES });
    }
    boxes.push(box);
    seen.add(box.type);
    const visiting = visit(box);
    if (visiting !== undefined) await visiting;
    offset += box.sizeBytes;
  }
  return { boxes, tail: { offset, length: source.sizeBytes - offset } };
}

function parseFileBox(head: Buffer, offset: number, fileSizeBytes: number): TopLevelBox {
  const header = parseBoxHeader(head, offset, fileSizeBytes);
  const idEnd = header.headerSizeBytes + BOX_ID_SIZE_BYTES;
  const hasId = header.type === 'uuid' && header.sizeBytes >= idEnd;
  return { ...header, boxId: hasId ? head.toString('hex', header.headerSizeBytes, idEnd) : null };
}

/** Ends a last `mdat` box that is a few bytes too long with the file, as players do. */
function withinFile(box: TopLevelBox, { sizeBytes }: ByteSource, seen: ReadonlySet<string>): TopLevelBox {
  const missingBytes = box.offset + box.sizeBytes - sizeBytes;
  const isTolerated = box.type === 'mdat' && seen.has('moov') && missingBytes <= MAX_MISSING_MEDIA_BYTES;
  if (missingBytes <= 0 || !isTolerated) return box;
  return { ...box, sizeBytes: box.sizeBytes - missingBytes, overstatedBytes: box.sizeBytes };
}

/**
 * Tells whether a box is data appended to a complete movie, which players ignore: an ID3v1 tag, truncated free space.
 */
function isTail(box: TopLevelBox, source: ByteSource, seen: ReadonlySet<string>): boolean {
  const isComplete = seen.has('moov') && (seen.has('mdat') || seen.has('moof'));
  return isComplete && !KNOWN_TYPES.has(box.type) && source.sizeBytes - box.offset <= MAX_TAIL_SIZE_BYTES;
}

/** The extended type of C2PA's boxes (C2PA 2.2, §A.5.1). */
export const C2PA_BOX_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');
const C2PA_BOX_ID_TEXT = C2PA_BOX_ID.toString('hex');
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

/** Tells whether a box is a C2PA box of any purpose. */
export function isC2paBox({ boxId }: TopLevelBox): boolean {
  return boxId === C2PA_BOX_ID_TEXT;
}

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
