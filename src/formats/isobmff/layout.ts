import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { ByteRange, MediaLayout, ReadableLayout } from '../format-handler.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  BOX_ID_SIZE_BYTES,
  Box,
  BoxFields,
  isC2paBox,
  readWholeBox,
  type TopLevelBox,
  type TopLevelBoxes,
  walkTopLevelBoxes,
} from './boxes.ts';
import { type C2paBox, elementsOf, readC2paBox, storeOf } from './c2pa-boxes.ts';
import {
  ANYWHERE,
  chunksOf,
  type DefaultSizes,
  MediaBoxes,
  type MediaRange,
  readDefaultSizes,
  runsOf,
} from './media-boxes.ts';
import type { MerkleBox } from './merkle-box.ts';
import {
  addFragmentOffsets,
  addGpsOffsets,
  addItemOffsets,
  addRandomAccessOffsets,
  addTrackOffsets,
  checkNesting,
  hasAddress,
  OffsetCollector,
  type StoredOffsets,
} from './stored-offsets.ts';
import { findStrayTable, hiddenIndex, hiddenMovies, misplacedIn, misusedBoxes, strayIndexes } from './stray-boxes.ts';
import { isSearchedType, type StrayTable, strayTableIn } from './table-places.ts';
import { kindOf, parseTrack, pictureTypeOf, type Track, type TrackKinds, trackKindsOf } from './track-kinds.ts';

/** Size of one read of headers: it covers many small fragments, or the `moof` box of a large one. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Largest `moof` box. A fragment usually has some ten kilobytes of tables. */
const MAX_MOOF_SIZE_BYTES = 16 * 1024 * 1024;
/** Largest size of all boxes with tables together; each is read into memory. A day of video has tens of megabytes. */
const MAX_TABLES_SIZE_BYTES = 256 * 1024 * 1024;
const TYPES_WITH_TABLES = ['moov', 'meta', 'meco'];
/** `ftyp` box for files without one: QuickTime, version 0, compatible with itself. */
const QUICKTIME_FILE_TYPE = Buffer.from('0000001466747970717420200000000071742020', 'hex');
const MAX_FILE_TYPE_SIZE_BYTES = 64 * 1024;
/** Extended type of a box with an XMP packet (XMP specification part 3, §1.2.7.1). */
const XMP_BOX_ID = 'be7acfcb97a942e89c71999491e3afac';

/** Layout of an ISO BMFF or QuickTime file. */
export interface IsobmffLayout extends MediaLayout, TopLevelBoxes {
  readonly name: string;
  readonly sizeBytes: number;
  readonly fileType: FileType;
  readonly isBroken: boolean;
  /** Range from the first fragment or segment index to the last, whose boxes store distances to each other. */
  readonly fragmentRange: { readonly start: number; readonly end: number } | null;
  readonly offsets: StoredOffsets;
  /** Boxes other than `mdat` in which players find media, or may; those that hashes leave out and that stand elsewhere than writers put them. */
  readonly strayMedia: readonly TopLevelBox[];
  /** The first box that leads players to samples where it has no place: they find media anywhere then. Null for none. */
  readonly strayTable: StrayTable | null;
  /** Those of the latter kind: signing leaves them out. */
  readonly misplaced: readonly TopLevelBox[];
  /** Error of the index of fragments (`mfra`), which hashes leave out, so that anybody can damage it; null for none. */
  readonly indexError: AppError | null;
}

/** The `ftyp` box, which C2PA readers expect at the very start of the file. */
interface FileType {
  readonly bytes: Buffer;
  /** Null where the file has none, and `bytes` is a default. */
  readonly box: TopLevelBox | null;
}

/**
 * Reads the top-level boxes, the kinds of tracks and every absolute offset of a file. Throws `BMFF_*` errors that name
 * the box and its offset.
 */
export async function readLayout(source: ByteSource, signal: AbortSignal): Promise<IsobmffLayout> {
  const { trackKinds, ...structure } = (await readStructure(source, signal, 'movie')) as Structure;
  const kind = kindOf(majorBrandOf(source.name, structure.fileType), trackKinds);
  return { ...structure, ...kind, hasVideo: trackKinds.hasVideo };
}

/**
 * Reads a still picture (HEIF and AVIF, ISO/IEC 23008-12), which is items of metadata without a movie, or a file up to a box that is
 * smaller than its header. Returns null for anything else. Throws as `readLayout` does.
 */
export async function readUnsignable(source: ByteSource, signal: AbortSignal): Promise<ReadableLayout | null> {
  const structure = await readStructure(source, signal, 'picture');
  return structure && { ...structure, mediaType: pictureTypeOf(majorBrandOf(source.name, structure.fileType)) };
}

/** A layout apart from what depends on the kinds of tracks. */
type Structure = Omit<IsobmffLayout, 'mediaType' | 'extensions' | 'hasVideo'> & { readonly trackKinds: TrackKinds };

/** Reads a movie, or a still picture. */
async function readStructure(
  source: ByteSource,
  signal: AbortSignal,
  kind: 'movie' | 'picture',
): Promise<Structure | null> {
  const { name, sizeBytes } = source;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const offsets = new OffsetCollector();
  const runs: MediaRange[] = [];
  const c2paBoxes: C2paBox[] = [];
  const merkleBoxes: MerkleBox[] = [];
  let moov: TopLevelBox | undefined;
  let defaults: DefaultSizes | undefined;
  let strayTable: StrayTable | null = null;
  const visit = (box: TopLevelBox): Promise<void> | undefined => {
    if (box.type === 'moov') moov ??= box;
    if (isC2paBox(box)) return readC2paBox(window, box, sizeBytes, { c2paBoxes, merkleBoxes });
    if (!isSearchedType(box.type) || box.type === 'moov') return;
    return (async () => {
      if (box.type === 'moof') defaults ??= await readDefaultSizes(name, window, moov);
      const stray =
        box.type === 'moof'
          ? await readFragment(name, window, box, offsets, defaults ?? new Map(), runs)
          : await findStrayTable(name, window, box);
      strayTable ??= stray;
    })();
  };
  const { boxes, tail, isBroken } = await walkTopLevelBoxes(source, window, visit, kind === 'picture');
  if (kind === 'movie') requireMovie(name, boxes);
  else if (!isBroken && !isPicture(boxes)) return null;
  const media = new MediaBoxes(boxes);
  for (const run of runs) media.add(run);
  const { strayTable: inMovie, ...trackKinds } = await readTables(source, window, boxes, offsets, media);
  strayTable ??= inMovie;
  if (strayTable !== null) media.add(ANYWHERE);
  const index = await hiddenIndex(source, window, boxes);
  if (index !== null) media.add(index);
  const misplaced = [...misplacedIn(boxes), ...(await strayIndexes(name, window, boxes))];
  const placed = boxes.filter((box) => !misplaced.includes(box));
  const indexError = await readIndexes(name, window, placed, offsets);
  for (const target of offsets.fields.flatMap(({ targets }) => targets)) media.add(target);
  const misused = await misusedBoxes(name, window, placed, kind);
  const hidden = moov === undefined ? await hiddenMovies(window, boxes) : [];
  const strayMedia = [...media.others(), ...misused, ...misplaced, ...hidden];
  const fileType = await readFileType(name, window, boxes);
  return {
    name,
    sizeBytes,
    boxes,
    tail,
    isBroken,
    fileType,
    fragmentRange: fragmentRangeOf(boxes),
    offsets,
    trackKinds,
    manifest: storeOf(c2paBoxes),
    elements: elementsOf(c2paBoxes),
    merkleBoxes,
    mediaBoxes: mediaBoxesOf(boxes),
    xmp: findXmp(boxes),
    strayMedia,
    ...(boxes[0] !== undefined && { firstBox: boxes[0] }),
    strayTable,
    misplaced,
    indexError,
    warnings: warningsOf(name, boxes, trackKinds.externalCount),
  };
}

function warningsOf(name: string, boxes: readonly TopLevelBox[], externalCount: number): Warning[] {
  const corrected = boxes.flatMap(({ offset, sizeBytes, overstatedBytes: statedBytes }) =>
    statedBytes === undefined ? [] : [warning('MEDIA_SIZE_CORRECTED', { name, offset, statedBytes, sizeBytes })],
  );
  return externalCount === 0
    ? corrected
    : [...corrected, warning('MEDIA_IN_OTHER_FILES', { name, by: `${externalCount} of its tracks or references` })];
}

/** Returns the boxes of media of a file without fragments. */
function mediaBoxesOf(boxes: readonly TopLevelBox[]): ByteRange[] {
  if (boxes.some(({ type }) => type === 'moof')) return [];
  return boxes.filter(({ type }) => type === 'mdat').map(({ offset, sizeBytes }) => ({ offset, length: sizeBytes }));
}

/** Adds offsets and runs of a fragment. Returns the first stray table in it. */
async function readFragment(
  name: string,
  window: ReadWindow,
  header: TopLevelBox,
  offsets: OffsetCollector,
  defaults: DefaultSizes,
  runs: MediaRange[],
): Promise<StrayTable | null> {
  const moof = await readWholeBox(name, window, header, MAX_MOOF_SIZE_BYTES);
  addFragmentOffsets(moof, offsets);
  for (const run of runsOf(moof, defaults)) addRun(run, runs);
  return strayTableIn(moof);
}

/** Adds a run to those before it, to the last of them where it continues that: interleaved tracks may have one a sample. */
function addRun(run: MediaRange, runs: MediaRange[]): void {
  const last = runs.at(-1);
  if (last?.end === run.start) runs.splice(-1, 1, { start: last.start, end: run.end });
  else runs.push(run);
}

function isPicture(boxes: readonly TopLevelBox[]): boolean {
  const types = new Set(boxes.map(({ type }) => type));
  return types.has('meta') && !types.has('moov') && !types.has('moof');
}

function requireMovie(name: string, boxes: readonly TopLevelBox[]): void {
  const types = new Set(boxes.map(({ type }) => type));
  if (!types.has('moov')) {
    throw new AppError('BMFF_MOVIE_MISSING', { name, isFragment: types.has('moof'), isPicture: isPicture(boxes) });
  }
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
 * Reads the boxes with tables one by one and adds their offsets. Returns the kinds of tracks, and how many tracks or references lead to
 * other files.
 */
async function readTables(
  { name, sizeBytes }: ByteSource,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
  offsets: OffsetCollector,
  media: MediaBoxes,
): Promise<TrackKinds & { readonly externalCount: number; readonly strayTable: StrayTable | null }> {
  const tracks: Track[] = [];
  const external: Box[] = [];
  let strayTable: StrayTable | null = null;
  let leftBytes = MAX_TABLES_SIZE_BYTES;
  for (const header of boxes.filter(({ type }) => TYPES_WITH_TABLES.includes(type))) {
    const box = await readWholeBox(name, window, header, leftBytes);
    leftBytes -= header.sizeBytes;
    if (box.type === 'meta') readMetadata(box, offsets);
    else if (box.type === 'meco') {
      for (const meta of box.descendants('meta')) addItemOffsets(meta, offsets);
    } else {
      readMovie(box, offsets, media, tracks, external);
      strayTable ??= strayTableIn(box);
      for (const gps of box.descendants('gps ')) addGpsOffsets(gps, sizeBytes, offsets);
    }
  }
  return { ...trackKindsOf(tracks), externalCount: external.length, strayTable };
}

/** Adds the offsets of `mfra` boxes. Returns the error of the first that cannot be read: players do without it. */
async function readIndexes(
  name: string,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
  offsets: OffsetCollector,
): Promise<AppError | null> {
  try {
    for (const header of boxes.filter(({ type }) => type === 'mfra')) {
      addRandomAccessOffsets(await readWholeBox(name, window, header, MAX_TABLES_SIZE_BYTES), offsets);
    }
    return null;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

function readMetadata(meta: Box, offsets: OffsetCollector): void {
  checkNesting(meta, offsets);
  addItemOffsets(meta, offsets);
}

function readMovie(moov: Box, offsets: OffsetCollector, media: MediaBoxes, tracks: Track[], external: Box[]): void {
  const { fileName: name, header } = moov;
  if (moov.descendant('cmov') !== undefined) {
    throw new AppError('BMFF_MOVIE_COMPRESSED', { name, offset: header.offset });
  }
  checkNesting(moov, offsets);
  for (const meta of metadataIn(moov)) addItemOffsets(meta, offsets);
  // Players that find a reference movie follow it to other files.
  external.push(...moov.descendants('rmra', 'rmda'));
  for (const trak of moov.descendants('trak')) {
    const track = parseTrack(trak);
    tracks.push(track);
    const isInFile = addTrackOffsets(trak, offsets);
    if (!isInFile) external.push(trak);
    if (isInFile || hasAddress(trak)) for (const chunk of chunksOf(trak, track.handlerType)) media.add(chunk);
    for (const meta of metadataIn(trak)) addItemOffsets(meta, offsets);
  }
}

/** Yields the metadata of a movie or a track: one `meta` box, and further ones in `meco` (ISO/IEC 14496-12 §8.11.7). */
function* metadataIn(box: Box): Generator<Box> {
  yield* box.descendants('meta');
  yield* box.descendants('meco', 'meta');
}

/** Reads the `ftyp` box, or returns a default; also for one that is too large, which is none of its type and cannot be signed. */
async function readFileType(name: string, window: ReadWindow, boxes: readonly TopLevelBox[]): Promise<FileType> {
  const box = boxes.find(({ type }) => type === 'ftyp');
  if (box === undefined || box.sizeBytes > MAX_FILE_TYPE_SIZE_BYTES) return { bytes: QUICKTIME_FILE_TYPE, box: null };
  const { bytes } = await readWholeBox(name, window, box, MAX_FILE_TYPE_SIZE_BYTES);
  return { bytes: Buffer.from(bytes), box };
}

/** Returns the major brand (ISO/IEC 14496-12 §4.3), or null where the file has none. */
function majorBrandOf(fileName: string, { bytes, box }: FileType): string | null {
  if (box === null || bytes.length < BOX_HEADER_SIZE_BYTES + 4) return null;
  return new BoxFields(new Box(fileName, box, bytes)).text(4);
}

/** Returns the range of the XMP packet. */
function findXmp(boxes: readonly TopLevelBox[]): ByteRange | null {
  const box = boxes.find(({ boxId }) => boxId === XMP_BOX_ID);
  if (box === undefined) return null;
  const headSizeBytes = box.headerSizeBytes + BOX_ID_SIZE_BYTES;
  return { offset: box.offset + headSizeBytes, length: box.sizeBytes - headSizeBytes };
}
