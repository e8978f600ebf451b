import { AppError } from '#errors/app-error.ts';
import { itemAt, valueAt } from '#errors/assert.ts';
import { type Box, BoxFields, isExcludedType, trackRunOf } from '#formats/isobmff-boxes.ts';
import { isC2paBox, listTopBoxes, malformed, type PartReader, refuseStrayTables, type TopBox } from './top-boxes.ts';

/** The layout of a fragment: one moof, one mdat, and the boxes around them. */
export interface FragmentLayout {
  readonly path: string;
  /** True when it is a byte range of a larger file, and so becomes a file of its own. */
  readonly isRange: boolean;
  /** Top-level boxes in order, without those of C2PA and others that no hash covers. */
  readonly boxes: readonly TopBox[];
  readonly moof: TopBox;
  /** The tracks that it has samples of. */
  readonly trackIds: readonly number[];
  readonly mdat: TopBox;
  /** The whole moof box as it was read. */
  readonly moofBox: Box;
  /** The absolute positions that it stores, which have to move with it; null for none. */
  readonly moofPositions: MoofPositions | null;
  /** Whole sidx boxes by their offset; their sizes and distances span what is inserted. */
  readonly indexes: ReadonlyMap<number, Buffer>;
}

interface MoofPositions {
  readonly baseDataOffsetsAt: readonly number[];
  /** True where the samples of its track runs begin with the mdat if they are counted from the moof. */
  readonly countsFromMoof: boolean;
}

/** A moof or sidx of more bytes than this describes more than a fragment. */
const MAX_TABLE_BYTES = 8 * 1024 * 1024;
/** A flag of a track fragment header (ISO/IEC 14496-12 §8.8.7), and lengths of two fields. */
const BASE_DATA_OFFSET_PRESENT = 0x000001;
const TRACK_ID_SIZE_BYTES = 4;
const BASE_DATA_OFFSET_SIZE_BYTES = 8;

/**
 * Reads the layout of a fragment. C2PA binds fragments of one moof and one mdat only (C2PA 2.2, appendix A.5): chunked
 * segments are refused, and boxes that lead players to samples elsewhere than at their place. Throws `FRAGMENT_IS_CHUNKED` or
 * `FRAGMENT_MALFORMED`.
 */
export async function readFragmentLayout(reader: PartReader): Promise<FragmentLayout> {
  const boxes = (await listTopBoxes(reader)).filter((box) => !isC2paBox(box) && !isExcludedType(box.type));
  const moofs = boxes.filter(({ type }) => type === 'moof');
  const mdats = boxes.filter(({ type }) => type === 'mdat');
  const [[moof], [mdat]] = [moofs, mdats];
  if (moof === undefined || mdat === undefined) throw incomplete(reader, boxes);
  if (moofs.length > 1 || mdats.length > 1) {
    throw new AppError('FRAGMENT_IS_CHUNKED', { file: reader.name, moofCount: moofs.length, mdatCount: mdats.length });
  }
  const moov = boxes.find(({ type }) => type === 'moov');
  if (moov !== undefined) throw malformed(reader, moov, 'a fragment cannot hold an init segment; separate them');
  const searched = await refuseStrayTables(reader, boxes, MAX_TABLE_BYTES);
  const ofType = (wanted: string) => searched.filter(({ type }) => type === wanted);
  const moofBox = itemAt(ofType('moof'), 0);
  return {
    path: reader.name,
    isRange: reader.isRange,
    boxes,
    moof,
    mdat,
    moofBox,
    ...readMoof(moofBox, mdat),
    indexes: new Map(ofType('sidx').map(({ header, bytes }) => [header.offset, bytes])),
  };
}

function incomplete(reader: PartReader, boxes: readonly TopBox[]): AppError {
  const [first] = boxes;
  const found = boxes.slice(0, 8).map(({ type }) => JSON.stringify(type));
  const problem = found.length === 0 ? 'it is empty' : `it has no moof with an mdat, only ${found.join(', ')}`;
  return malformed(reader, first ?? { type: '', offset: reader.start }, problem);
}

/** Finds tracks and absolute positions in a moof. All else in it counts from the moof or from those positions. */
function readMoof(moof: Box, mdat: TopBox): Pick<FragmentLayout, 'trackIds' | 'moofPositions'> {
  const trackIds: number[] = [];
  const baseDataOffsetsAt: number[] = [];
  for (const tfhd of moof.descendants('traf', 'tfhd')) {
    const fields = new BoxFields(tfhd);
    const { flags } = fields.versionAndFlags();
    trackIds.push(fields.uint(TRACK_ID_SIZE_BYTES));
    if ((flags & BASE_DATA_OFFSET_PRESENT) === 0) continue;
    baseDataOffsetsAt.push(fields.offset - moof.header.offset);
    fields.skip(BASE_DATA_OFFSET_SIZE_BYTES);
  }
  if (baseDataOffsetsAt.length === 0) return { trackIds, moofPositions: null };
  // The samples of a run without an offset go on behind the run before.
  const starts = [...moof.descendants('traf', 'trun')].map((run) => trackRunOf(run).dataOffset ?? Infinity);
  const first = starts.reduce((least, start) => Math.min(least, start), Infinity);
  const countsFromMoof = first === mdat.offset + mdat.headerSizeBytes - moof.header.offset;
  return { trackIds, moofPositions: { baseDataOffsetsAt, countsFromMoof } };
}

/** Maps positions of the source fragment to the output. */
export interface OutputPositions {
  ofBox(box: TopBox): number;
  /**
   * Returns the position in the output of any boundary in the source file. A boundary at the moof is that of the Merkle
   * box before it.
   */
  ofBoundary(offset: number): number;
}

/** Computes the positions of a fragment's boxes when a Merkle box of that size is inserted before its moof. */
export function outputPositions({ boxes, moof }: FragmentLayout, merkleBoxSizeBytes: number): OutputPositions {
  const starts = new Map<TopBox, number>();
  let end = 0;
  for (const box of boxes) {
    if (box === moof) end += merkleBoxSizeBytes;
    starts.set(box, end);
    end += box.sizeBytes;
  }
  const last = itemAt(boxes, boxes.length - 1);
  const shiftAtEnd = end - (last.offset + last.sizeBytes);
  return {
    ofBox: (box) => valueAt(starts, box),
    ofBoundary: (offset) => {
      const box = boxes.find((candidate) => offset < candidate.offset + candidate.sizeBytes);
      if (box === undefined) return offset + shiftAtEnd;
      const start = valueAt(starts, box);
      if (offset <= box.offset) return box === moof ? start - merkleBoxSizeBytes : start;
      return start + (offset - box.offset);
    },
  };
}
