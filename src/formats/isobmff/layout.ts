import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { MediaLayout } from '../format-handler.ts';
import { BOX_HEADER_SIZE_BYTES, Box, BoxFields, readWholeBox } from './boxes.ts';
import {
  addFragmentOffsets,
  addItemOffsets,
  addRandomAccessOffsets,
  addTrackOffsets,
  checkNesting,
  OffsetCollector,
  type StoredOffsets,
} from './stored-offsets.ts';
import {
  BOX_ID_SIZE_BYTES,
  C2PA_BOX_HEAD_BYTES,
  type C2paBoxPurpose,
  isC2paBox,
  parseC2paBox,
  type TopLevelBox,
  type TopLevelBoxes,
  walkTopLevelBoxes,
} from './top-level-boxes.ts';
import { kindOf, parseTrack, type Track, type TrackKinds, trackKindsOf } from './tracks.ts';

/** Size of one read of headers: it covers many small fragments, or the `moof` box of a large one. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Largest `moof` box. A fragment usually has some ten kilobytes of tables. */
const MAX_MOOF_SIZE_BYTES = 16 * 1024 * 1024;
/** Largest size of all boxes with tables together; each is read into memory. A day of video has tens of megabytes. */
const MAX_TABLES_SIZE_BYTES = 256 * 1024 * 1024;
const TYPES_WITH_TABLES = ['moov', 'mfra', 'meta'];
/** `ftyp` box for files without one: QuickTime, version 0, compatible with itself. */
const QUICKTIME_FILE_TYPE = Buffer.from('0000001466747970717420200000000071742020', 'hex');
const MAX_FILE_TYPE_SIZE_BYTES = 64 * 1024;
/** Extended type of a box with an XMP packet (XMP specification part 3, §1.2.7.1). */
const XMP_BOX_ID = 'be7acfcb97a942e89c71999491e3afac';

/**
 * Purposes of boxes with a manifest store, newest first: an update stands beside the original one (C2PA 2.2, §A.5.1).
 */
const STORE_PURPOSES: readonly C2paBoxPurpose[] = ['update', 'manifest', 'original'];
/** Largest number of C2PA boxes whose purpose is read. A file has one or two stores; the rest are Merkle boxes. */
const MAX_EXAMINED_BOXES = 64;
/** Size field at the start of a JUMBF box. */
const JUMBF_SIZE_BYTES = 4;

/** Layout of an ISO BMFF or QuickTime file. */
export interface IsobmffLayout extends MediaLayout, TopLevelBoxes {
  readonly name: string;
  readonly sizeBytes: number;
  readonly fileType: FileType;
  /** Range from the first fragment or segment index to the last, whose boxes store distances to each other. */
  readonly fragmentRange: { readonly start: number; readonly end: number } | null;
  readonly offsets: StoredOffsets;
}

/** The `ftyp` box, which C2PA readers expect at the very start of the file. */
interface FileType {
  readonly bytes: Buffer;
  /** Null where the file has none, and `bytes` is a default. */
  readonly box: TopLevelBox | null;
}

type ByteRange = NonNullable<MediaLayout['manifest']>;

/**
 * Reads the top-level boxes, the kinds of tracks and every absolute offset of a file. Throws `BMFF_*` errors that name
 * the box and its offset.
 */
export async function readLayout(source: ByteSource, signal: AbortSignal): Promise<IsobmffLayout> {
  const { name, sizeBytes } = source;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const offsets = new OffsetCollector();
  const { boxes, tail } = await walkTopLevelBoxes(source, window, (box) =>
    box.type === 'moof' ? readFragment(name, window, box, offsets) : undefined,
  );
  requireMovie(name, boxes);
  const trackKinds = await readTables(name, window, boxes, offsets);
  const fileType = await readFileType(name, window, boxes);
  return {
    name,
    sizeBytes,
    boxes,
    tail,
    fileType,
    fragmentRange: fragmentRangeOf(boxes),
    offsets,
    ...kindOf(majorBrandOf(name, fileType), trackKinds),
    hasVideo: trackKinds.hasVideo,
    manifest: await findManifest(window, boxes.filter(isC2paBox)),
    xmp: findXmp(boxes),
    warnings: warningsOf(name, boxes, trackKinds.externalTrackCount),
  };
}

function warningsOf(name: string, boxes: readonly TopLevelBox[], trackCount: number): Warning[] {
  const corrected = boxes.flatMap(({ offset, sizeBytes, overstatedBytes: statedBytes }) =>
    statedBytes === undefined ? [] : [warning('MEDIA_SIZE_CORRECTED', { name, offset, statedBytes, sizeBytes })],
  );
  return trackCount === 0 ? corrected : [...corrected, warning('MEDIA_IN_OTHER_FILES', { name, trackCount })];
}

async function readFragment(
  name: string,
  window: ReadWindow,
  header: TopLevelBox,
  offsets: OffsetCollector,
): Promise<void> {
  const moof = await readWholeBox(name, window, header, MAX_MOOF_SIZE_BYTES);
  addFragmentOffsets(moof, offsets);
}

function requireMovie(name: string, boxes: readonly TopLevelBox[]): void {
  const types = new Set(boxes.map(({ type }) => type));
  if (!types.has('moov')) throw new AppError('BMFF_MOVIE_MISSING', { name, isFragment: types.has('moof') });
  if (!types.has('mdat') && !types.has('moof')) throw new AppError('BMFF_MEDIA_MISSING', { name });
}

/**
 * Returns the range whose distances are fixed: `moof` boxes store distances to their media, `sidx` boxes to fragments.
 */
function fragmentRangeOf(boxes: readonly TopLevelBox[]): IsobmffLayout['fragmentRange'] {
  const first = boxes.find(({ type }) => type === 'sidx' || type === 'moof');
  const last = boxes.findLast(({ type }) => type === 'moof' || type === 'mdat');
  if (first === undefined || last === undefined || last.offset < first.offset) return null;
  return { start: first.offset, end: last.offset };
}

/**
 * Reads the boxes with tables one by one and adds their offsets. Returns the kinds of tracks, and how many have their
 * media in other files.
 */
async function readTables(
  name: string,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
  offsets: OffsetCollector,
): Promise<TrackKinds & { readonly externalTrackCount: number }> {
  const tracks: Track[] = [];
  const externalTracks: Box[] = [];
  let leftBytes = MAX_TABLES_SIZE_BYTES;
  for (const header of boxes.filter(({ type }) => TYPES_WITH_TABLES.includes(type))) {
    const box = await readWholeBox(name, window, header, leftBytes);
    leftBytes -= header.sizeBytes;
    if (box.type === 'mfra') addRandomAccessOffsets(box, offsets);
    else if (box.type === 'meta') readMetadata(box, offsets);
    else readMovie(box, offsets, tracks, externalTracks);
  }
  return { ...trackKindsOf(tracks), externalTrackCount: externalTracks.length };
}

function readMetadata(meta: Box, offsets: OffsetCollector): void {
  checkNesting(meta, offsets);
  addItemOffsets(meta, offsets);
}

function readMovie(moov: Box, offsets: OffsetCollector, tracks: Track[], externalTracks: Box[]): void {
  const { fileName: name, header } = moov;
  if (moov.descendant('cmov') !== undefined) {
    throw new AppError('BMFF_MOVIE_COMPRESSED', { name, offset: header.offset });
  }
  checkNesting(moov, offsets);
  for (const meta of moov.descendants('meta')) addItemOffsets(meta, offsets);
  for (const trak of moov.descendants('trak')) {
    tracks.push(parseTrack(trak));
    if (!addTrackOffsets(trak, offsets)) externalTracks.push(trak);
    for (const meta of trak.descendants('meta')) addItemOffsets(meta, offsets);
  }
}

/** Reads the `ftyp` box, or returns a default. */
async function readFileType(name: string, window: ReadWindow, boxes: readonly TopLevelBox[]): Promise<FileType> {
  const box = boxes.find(({ type }) => type === 'ftyp');
  if (box === undefined) return { bytes: QUICKTIME_FILE_TYPE, box: null };
  const { bytes } = await readWholeBox(name, window, box, MAX_FILE_TYPE_SIZE_BYTES);
  return { bytes: Buffer.from(bytes), box };
}

/** Returns the major brand (ISO/IEC 14496-12 §4.3), or null where the file has none. */
function majorBrandOf(fileName: string, { bytes, box }: FileType): string | null {
  if (box === null || bytes.length < BOX_HEADER_SIZE_BYTES + 4) return null;
  return new BoxFields(new Box(fileName, box, bytes)).text(4);
}

/** Returns the range of the active manifest store, given the C2PA boxes of the file. */
async function findManifest(window: ReadWindow, boxes: readonly TopLevelBox[]): Promise<ByteRange | null> {
  const stores = new Map<C2paBoxPurpose, ByteRange>();
  for (const box of boxes.slice(0, MAX_EXAMINED_BOXES)) {
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

/** Returns the range of the manifest store without the zeros that may follow it in its box. */
async function withoutPadding(window: ReadWindow, offset: number, end: number): Promise<ByteRange | null> {
  const available = end - offset;
  if (available < JUMBF_SIZE_BYTES) return null;
  const statedBytes = (await window.read(offset, JUMBF_SIZE_BYTES)).readUInt32BE(0);
  const isPlausible = statedBytes >= 8 && statedBytes <= available;
  return { offset, length: isPlausible ? statedBytes : available };
}

/** Returns the range of the XMP packet. */
function findXmp(boxes: readonly TopLevelBox[]): ByteRange | null {
  const box = boxes.find(({ boxId }) => boxId === XMP_BOX_ID);
  if (box === undefined) return null;
  const headSizeBytes = box.headerSizeBytes + BOX_ID_SIZE_BYTES;
  return { offset: box.offset + headSizeBytes, length: box.sizeBytes - headSizeBytes };
}
