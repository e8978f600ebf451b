import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { ReadWindow } from '../read-window.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  type BoxHeader,
  fitsInto,
  LONGEST_BOX_HEADER_BYTES,
  parseBoxHeader,
  requireFit,
} from './box.ts';
import { BOX_ID_SIZE_BYTES, C2PA_BOX_ID } from './c2pa-box.ts';

/** Bound of the boxes directly in a file: some 100,000 fragments, or a day of low-latency streaming. */
const MAX_FILE_BOXES = 500_000;
/** Bytes behind the last box that are taken for something appended to the file, rather than for a damaged one. */
const LARGEST_TAIL_BYTES = 1024 * 1024;

/**
 * So many bytes the last `mdat` box may claim beyond the end of the file: some programs count its header, or what fills it up,
 * twice. Where more is missing, the file is taken to be cut short.
 */
const MAX_MISSING_MEDIA_BYTES = 64;

/** Types that stand directly in files and matter. One of these that does not fit is cut short, not something else. */
const KNOWN_TYPES = new Set(
  'ftyp styp moov mdat moof mfra uuid meta meco sidx ssix emsg prft pdin pnot PICT'.split(' '),
);

/** A box directly in the file. */
export interface FileBox extends BoxHeader {
  /** The extended type of a `uuid` box, in hexadecimal. */
  readonly boxId: string | null;
  /** The size that its header says, where that is more than the file holds: `sizeBytes` is what there is. */
  readonly overstatedBytes?: number;
}

const C2PA_BOX_ID_TEXT = C2PA_BOX_ID.toString('hex');

/** Whether a box is one of C2PA's, whatever its purpose. */
export function isC2paBox({ boxId }: FileBox): boolean {
  return boxId === C2PA_BOX_ID_TEXT;
}

/** Everything that is directly in a file. */
export interface FileBoxes {
  readonly boxes: readonly FileBox[];
  /** What follows the last box and is none; mostly of length 0. */
  readonly tail: { readonly offset: number; readonly length: number };
}

/** Walks the boxes directly in a file, in order; `visit` is called with each. */
export async function walkFile(
  source: ByteSource,
  window: ReadWindow,
  visit: (box: FileBox) => Promise<void> | undefined,
): Promise<FileBoxes> {
  const file = { fileName: source.name, type: 'file', endOffset: source.sizeBytes };
  const boxes: FileBox[] = [];
  const seen = new Set<string>();
  let offset = 0;
  // Up to 7 bytes cannot be a box; readers of C2PA hash them as they are.
  while (offset + BOX_HEADER_SIZE_BYTES <= source.sizeBytes) {
    const headSizeBytes = Math.min(LONGEST_BOX_HEADER_BYTES + BOX_ID_SIZE_BYTES, source.sizeBytes - offset);
    const head = window.held(offset, headSizeBytes) ?? (await window.read(offset, headSizeBytes));
    const box = withinFile(parseFileBox(head, offset, source.sizeBytes), source, seen);
    if (!fitsInto(box, source.sizeBytes) && isTail(box, source, seen)) break;
    requireFit(box, file);
    if (boxes.length === MAX_FILE_BOXES) {
      throw new AppError('BMFF_TOO_MANY_BOXES', { name: source.name, offset, maxBoxes: MAX_FILE_BOXES });
    }
    boxes.push(box);
    seen.add(box.type);
    const visiting = visit(box);
    if (visiting !== undefined) await visiting;
    offset += box.sizeBytes;
  }
  return { boxes, tail: { offset, length: source.sizeBytes - offset } };
}

function parseFileBox(head: Buffer, offset: number, fileSizeBytes: number): FileBox {
  const header = parseBoxHeader(head, offset, fileSizeBytes);
  const idEnd = header.headerSizeBytes + BOX_ID_SIZE_BYTES;
  const hasId = header.type === 'uuid' && header.sizeBytes >= idEnd;
  return { ...header, boxId: hasId ? head.toString('hex', header.headerSizeBytes, idEnd) : null };
}

/** Players read a movie whose last media box claims a few bytes too many up to its end. */
function withinFile(box: FileBox, { sizeBytes }: ByteSource, seen: ReadonlySet<string>): FileBox {
  const missingBytes = box.offset + box.sizeBytes - sizeBytes;
  const isTolerated = box.type === 'mdat' && seen.has('moov') && missingBytes <= MAX_MISSING_MEDIA_BYTES;
  if (missingBytes <= 0 || !isTolerated) return box;
  return { ...box, sizeBytes: box.sizeBytes - missingBytes, overstatedBytes: box.sizeBytes };
}

/** Players ignore what some programs leave behind a complete movie: an ID3v1 tag, free space that was cut off. */
function isTail(box: FileBox, source: ByteSource, seen: ReadonlySet<string>): boolean {
  const isComplete = seen.has('moov') && (seen.has('mdat') || seen.has('moof'));
  return isComplete && !KNOWN_TYPES.has(box.type) && source.sizeBytes - box.offset <= LARGEST_TAIL_BYTES;
}
