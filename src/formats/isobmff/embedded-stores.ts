import type { MediaLayout } from '../format-handler.ts';
import type { ReadWindow } from '../read-window.ts';
import { BOX_ID_SIZE_BYTES, C2PA_BOX_HEAD_BYTES, type C2paBoxPurpose, parseC2paBox } from './c2pa-box.ts';
import type { FileBox } from './file-boxes.ts';

type ByteRange = NonNullable<MediaLayout['manifest']>;

/** The extended type of a box with an XMP packet (XMP specification part 3, §1.2.7.1). */
const XMP_BOX_ID = 'be7acfcb97a942e89c71999491e3afac';
/** Of several stores the newest: an update comes beside the original one (C2PA 2.2, §A.5.1). */
const STORE_PURPOSES: readonly C2paBoxPurpose[] = ['update', 'manifest', 'original'];
/** Purposes of so many boxes are looked at. A file has one or two stores; the rest would be Merkle boxes. */
const MAX_BOXES_LOOKED_AT = 64;
/** A JUMBF box starts with its own size, 32 bits wide. */
const JUMBF_SIZE_BYTES = 4;

/** Where the active manifest store stands, given the C2PA boxes of the file. */
export async function findManifest(window: ReadWindow, boxes: readonly FileBox[]): Promise<ByteRange | null> {
  const stores = new Map<C2paBoxPurpose, ByteRange>();
  for (const box of boxes.slice(0, MAX_BOXES_LOOKED_AT)) {
    const start = box.offset + box.headerSizeBytes;
    const end = box.offset + box.sizeBytes;
    const parsed = parseC2paBox(await window.read(start, Math.min(C2PA_BOX_HEAD_BYTES, end - start)));
    if (parsed === undefined || stores.has(parsed.purpose)) continue;
    const range = await withoutPadding(window, start + parsed.payloadStart, end);
    if (range !== null) stores.set(parsed.purpose, range);
  }
  const purpose = STORE_PURPOSES.find((candidate) => stores.has(candidate));
  return purpose === undefined ? null : (stores.get(purpose) ?? null);
}

/** The manifest store alone; zeros may follow it in its box. */
async function withoutPadding(window: ReadWindow, offset: number, end: number): Promise<ByteRange | null> {
  const available = end - offset;
  if (available < JUMBF_SIZE_BYTES) return null;
  const statedBytes = (await window.read(offset, JUMBF_SIZE_BYTES)).readUInt32BE(0);
  const isPlausible = statedBytes >= 8 && statedBytes <= available;
  return { offset, length: isPlausible ? statedBytes : available };
}

/** Where the XMP packet stands. */
export function findXmp(boxes: readonly FileBox[]): ByteRange | null {
  const box = boxes.find(({ boxId }) => boxId === XMP_BOX_ID);
  if (box === undefined) return null;
  const headSizeBytes = box.headerSizeBytes + BOX_ID_SIZE_BYTES;
  return { offset: box.offset + headSizeBytes, length: box.sizeBytes - headSizeBytes };
}
