import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { ReadWindow } from '../read-window.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  type BoxHeader,
  fitsInto,
  MAX_BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  requireFit,
} from './boxes.ts';
import { BOX_ID_SIZE_BYTES, C2PA_BOX_ID } from './c2pa-box.ts';

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

const C2PA_BOX_ID_TEXT = C2PA_BOX_ID.toString('hex');

/** Tells whether a box is a C2PA box of any purpose. */
export function isC2paBox({ boxId }: TopLevelBox): boolean {
  return boxId === C2PA_BOX_ID_TEXT;
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
