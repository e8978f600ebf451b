import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { ReadWindow } from '../read-window.ts';
import { Box, type BoxHeader, shownType } from './box.ts';
import { trackOffsets } from './chunk-offsets.ts';
import { findManifest, findXmp } from './embedded-stores.ts';
import { type FileBox, isC2paBox, walkFile } from './file-boxes.ts';
import { majorBrandOf, readFileType } from './file-type.ts';
import { fragmentOffsets, randomAccessOffsets } from './fragment-offsets.ts';
import { itemOffsets } from './item-offsets.ts';
import type { IsobmffLayout } from './layout.ts';
import { kindOf } from './media-type.ts';
import type { OffsetField, OffsetTable } from './stored-offsets.ts';
import { trackKindsOf } from './tracks.ts';

/** One read of headers fetches so many bytes: of small fragments many, and of large ones the `moof` box. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Bound of all boxes with tables that are read into memory as a whole. A day of video has some tens of megabytes. */
const LARGEST_TABLES_BYTES = 256 * 1024 * 1024;
/** Bounds of the boxes that are read through the window. Fragments have at most some ten kilobytes of tables. */
const LARGEST_FRAGMENT_TABLES_BYTES = 16 * 1024 * 1024;
const LARGEST_FILE_TYPE_BYTES = 64 * 1024;
/** Bound of the base data offsets of all fragments. */
const MAX_FRAGMENT_OFFSETS = 1_000_000;

/** Reads what is needed to put a manifest into a file: its boxes, its kinds of tracks, every absolute offset. */
export async function readLayout(source: ByteSource, signal: AbortSignal): Promise<IsobmffLayout> {
  const { name, sizeBytes } = source;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const fields: OffsetField[] = [];
  const { boxes, tail } = await walkFile(source, window, (box) =>
    box.type === 'moof' ? readFragment(name, window, box, fields) : undefined,
  );
  requireMovie(name, boxes);
  const tables = await readTables(name, window, boxes, fields);
  const fileType = await readCheckedFileType(name, window, boxes);
  return {
    name,
    sizeBytes,
    boxes,
    tail,
    fileType,
    rigid: rigidPartOf(boxes),
    offsets: { tables: tables.offsets, fields },
    ...kindOf(majorBrandOf(name, fileType), tables.trackKinds),
    hasVideo: tables.trackKinds.hasVideo,
    manifest: await findManifest(window, boxes.filter(isC2paBox)),
    xmp: findXmp(boxes),
  };
}

async function readFragment(name: string, window: ReadWindow, box: FileBox, fields: OffsetField[]): Promise<void> {
  requireSize(name, box, box.sizeBytes, LARGEST_FRAGMENT_TABLES_BYTES);
  fields.push(...fragmentOffsets(new Box(name, box, await window.read(box.offset, box.sizeBytes))));
  if (fields.length > MAX_FRAGMENT_OFFSETS) {
    throw new AppError('BMFF_TOO_MANY_BOXES', { name, offset: box.offset, maxBoxes: MAX_FRAGMENT_OFFSETS });
  }
}

async function readCheckedFileType(name: string, window: ReadWindow, boxes: readonly FileBox[]) {
  const box = boxes.find(({ type }) => type === 'ftyp');
  if (box !== undefined) requireSize(name, box, box.sizeBytes, LARGEST_FILE_TYPE_BYTES);
  return await readFileType(window, box);
}

function requireMovie(name: string, boxes: readonly FileBox[]): void {
  const types = new Set(boxes.map(({ type }) => type));
  if (!types.has('moov')) throw new AppError('BMFF_MOVIE_MISSING', { name, isFragment: types.has('moof') });
  if (!types.has('mdat') && !types.has('moof')) throw new AppError('BMFF_MEDIA_MISSING', { name });
}

/** Reads the boxes that hold tables one by one; offsets of items are added to `fields`. */
async function readTables(name: string, window: ReadWindow, boxes: readonly FileBox[], fields: OffsetField[]) {
  const offsets: OffsetTable[] = [];
  const traks: Box[] = [];
  let totalBytes = 0;
  for (const header of boxes.filter(({ type }) => ['moov', 'mfra', 'meta'].includes(type))) {
    totalBytes += header.sizeBytes;
    requireSize(name, header, totalBytes, LARGEST_TABLES_BYTES);
    const box = new Box(name, header, await window.read(header.offset, header.sizeBytes));
    if (box.type === 'mfra') offsets.push(...randomAccessOffsets(box));
    if (box.type === 'meta') fields.push(...itemOffsets(box));
    if (box.type !== 'moov') continue;
    if (box.descendant('cmov') !== undefined)
      throw new AppError('BMFF_MOVIE_COMPRESSED', { name, offset: header.offset });
    const tracksOfBox = [...box.descendants('trak')];
    traks.push(...tracksOfBox);
    for (const meta of [box, ...tracksOfBox].flatMap((holder) => [...holder.descendants('meta')])) {
      fields.push(...itemOffsets(meta));
    }
    for (const trak of tracksOfBox) offsets.push(...trackOffsets(trak));
  }
  return { offsets, trackKinds: trackKindsOf(traks) };
}

function requireSize(name: string, box: BoxHeader, sizeBytes: number, maxSizeBytes: number): void {
  if (sizeBytes <= maxSizeBytes) return;
  const { type, offset } = box;
  throw new AppError('BMFF_BOX_TOO_LARGE', { name, boxType: shownType(type), offset, sizeBytes, maxSizeBytes });
}

/** Fragments count from their `moof` box to their media, and segment indexes from their own end. */
function rigidPartOf(boxes: readonly FileBox[]): IsobmffLayout['rigid'] {
  const first = boxes.find(({ type }) => type === 'sidx' || type === 'moof');
  const last = boxes.findLast(({ type }) => type === 'moof' || type === 'mdat');
  if (first === undefined || last === undefined || last.offset < first.offset) return null;
  return { start: first.offset, end: last.offset };
}
