import type { ReadWindow } from '#bytes/byte-source.ts';
import type { ByteRange, ManifestElement } from '../format-handler.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  BOX_ID_SIZE_BYTES,
  C2PA_BOX_HEAD_BYTES,
  type C2paBoxPurpose,
  parseC2paBox,
  type TopLevelBox,
} from './boxes.ts';
import { MAX_MERKLE_BOX_BYTES, type MerkleBox, readMerkleBox } from './merkle-box.ts';

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

/** Adds a box to the C2PA boxes, or to `merkleBoxes` where it is a Merkle box that can be read. */
export async function readC2paBox(
  window: ReadWindow,
  box: TopLevelBox,
  fileSizeBytes: number,
  { c2paBoxes, merkleBoxes }: { readonly c2paBoxes: C2paBox[]; readonly merkleBoxes: MerkleBox[] },
): Promise<void> {
  const start = box.offset + box.headerSizeBytes;
  const end = box.offset + box.sizeBytes;
  const head = Buffer.from(await window.read(start, Math.min(C2PA_BOX_HEAD_BYTES + JUMBF_SIZE_BYTES, end - start)));
  const { purpose: stated = null, payloadStart = BOX_ID_SIZE_BYTES } = parseC2paBox(head) ?? {};
  const payload = head.subarray(payloadStart);
  const merkle =
    stated === 'merkle' && end - start <= MAX_MERKLE_BOX_BYTES ? await window.read(start, end - start) : null;
  const location = merkle === null ? undefined : readMerkleBox(merkle.subarray(payloadStart));
  if (location !== undefined) {
    merkleBoxes.push(location);
    return;
  }
  // Nobody signs where the box says that the first Merkle box stands.
  const isInFile = stated === null || stated === 'merkle' || head.readBigUInt64BE(payloadStart - 8) <= fileSizeBytes;
  const purpose = isInFile ? stated : null;
  const content = { offset: start + payloadStart, length: end - start - payloadStart };
  const storeSizeBytes = payload.length < JUMBF_SIZE_BYTES ? 0 : payload.readUInt32BE(0);
  c2paBoxes.push({ box, purpose, content, storeSizeBytes });
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

/** Returns the elements of a file; what an update stands beside is before it. */
export function elementsOf(c2paBoxes: readonly C2paBox[]): ManifestElement[] {
  const sorted = c2paBoxes.toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)));
  const isReadable = READABLE_PURPOSES.includes(sorted.map(nameOf).join());
  return sorted.map(({ box, content }) => ({
    offset: box.offset,
    length: box.sizeBytes,
    content: isReadable ? content : null,
  }));
}

function nameOf({ purpose }: C2paBox): string {
  return purpose ?? 'unknown';
}
