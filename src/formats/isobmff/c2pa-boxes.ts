import type { ReadWindow } from '#bytes/byte-source.ts';
import type { ByteRange, ManifestElement } from '../manifest-element.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  BOX_ID_SIZE_BYTES,
  C2PA_BOX_HEAD_BYTES,
  type C2paBoxPurpose,
  parseC2paBox,
  type TopLevelBox,
} from './boxes.ts';

/**
 * Purposes of boxes with a manifest store, newest first: an update stands beside the original one (C2PA 2.2, §A.5.1).
 */
const STORE_PURPOSES: readonly C2paBoxPurpose[] = ['update', 'manifest', 'original'];
/** Size field at the start of a JUMBF box. */
const JUMBF_SIZE_BYTES = 4;

/** C2PA box that is no Merkle box, with the bytes behind its header; without, where its purpose is unknown. */
export interface C2paBox {
  readonly box: TopLevelBox;
  readonly purpose: C2paBoxPurpose | null;
  readonly content: ByteRange;
  /** Size that the store at the start of the content states. */
  readonly storeSizeBytes: number;
}

/** Adds a box to the C2PA boxes, unless it is a Merkle box: one that holds a map in CBOR (C2PA 2.2, §A.5.4). */
export async function readC2paBox(
  window: ReadWindow,
  box: TopLevelBox,
  fileSizeBytes: number,
  c2paBoxes: C2paBox[],
): Promise<void> {
  const start = box.offset + box.headerSizeBytes;
  const end = box.offset + box.sizeBytes;
  const head = await window.read(start, Math.min(C2PA_BOX_HEAD_BYTES + JUMBF_SIZE_BYTES, end - start));
  const { purpose: stated = null, payloadStart = BOX_ID_SIZE_BYTES } = parseC2paBox(head) ?? {};
  const payload = head.subarray(payloadStart);
  if (stated === 'merkle' && isCborMap(payload)) return;
  // Nobody signs where the box says that the first Merkle box stands.
  const isInFile = stated === null || stated === 'merkle' || head.readBigUInt64BE(payloadStart - 8) <= fileSizeBytes;
  const purpose = isInFile ? stated : null;
  const content = { offset: start + payloadStart, length: end - start - payloadStart };
  const storeSizeBytes = payload.length < JUMBF_SIZE_BYTES ? 0 : payload.readUInt32BE(0);
  c2paBoxes.push({ box, purpose, content, storeSizeBytes });
}

/** Tells whether CBOR starts with a map (RFC 8949 §3.1: major type 5). */
function isCborMap([initial = 0]: Buffer): boolean {
  return initial >> 5 === 5;
}

/** Returns the range of the active manifest store, without the zeros that may follow it in its box. */
export function storeOf(c2paBoxes: readonly C2paBox[]): ByteRange | null {
  const stores = c2paBoxes.filter(({ content }) => content.length >= JUMBF_SIZE_BYTES);
  const found = STORE_PURPOSES.map((purpose) => stores.find((each) => each.purpose === purpose));
  const active = found.find((each) => each !== undefined);
  if (active === undefined) return null;
  const { content, storeSizeBytes } = active;
  const isPlausible = storeSizeBytes >= BOX_HEADER_SIZE_BYTES && storeSizeBytes <= content.length;
  return { offset: content.offset, length: isPlausible ? storeSizeBytes : content.length };
}

/** The purposes of the boxes of a file with a manifest: nobody signs them, and readers do not agree on others. */
const READABLE_PURPOSES = ['manifest', 'original,update'];

export function elementsOf(c2paBoxes: readonly C2paBox[]): ManifestElement[] {
  const purposes = c2paBoxes.map(({ purpose }) => purpose ?? 'unknown').sort();
  const isReadable = READABLE_PURPOSES.includes(purposes.join());
  return c2paBoxes.map(({ box, content }) => ({
    offset: box.offset,
    length: box.sizeBytes,
    content: isReadable ? content : null,
  }));
}
