import { AppError } from '#errors/app-error.ts';
import { isC2paBox } from './c2pa-boxes.ts';
import { innerBoxes } from './inner-boxes.ts';
import { listTopBoxes, malformed, type PartReader, type TopBox } from './top-boxes.ts';

/** A fragment as it lies in its file: one moof, one mdat, and what stands around them. */
export interface FragmentLayout {
  readonly path: string;
  /** Top-level boxes in order, without those of C2PA. */
  readonly boxes: readonly TopBox[];
  readonly moof: TopBox;
  /** Bytes of earlier Merkle boxes, which are left out of the output. */
  readonly removedBytes: number;
  /** The moof box where it stores absolute positions that have to move with it, else null. */
  readonly moofWithPositions: { readonly bytes: Buffer; readonly baseDataOffsetsAt: readonly number[] } | null;
  /** Whole sidx boxes by their offset; their sizes and distances span what is inserted. */
  readonly indexes: ReadonlyMap<number, Buffer>;
}

/** A moof or sidx of more bytes than this describes more than a fragment. */
const TABLE_MAX_BYTES = 8 * 1024 * 1024;
/** `tfhd` flag: base_data_offset is present (ISO/IEC 14496-12 §8.8.7). */
const BASE_DATA_OFFSET_PRESENT = 0x000001;

/**
 * Reads the layout of a fragment. C2PA binds fragments of one moof and one mdat only (C2PA 2.2, appendix A.5): chunked
 * segments are refused.
 */
export async function readFragmentLayout(reader: PartReader): Promise<FragmentLayout> {
  const all = await listTopBoxes(reader);
  const boxes = all.filter((box) => !isC2paBox(box));
  const moofs = boxes.filter(({ type }) => type === 'moof');
  const mdats = boxes.filter(({ type }) => type === 'mdat');
  const [moof] = moofs;
  if (moof === undefined || mdats.length === 0) throw incomplete(reader, boxes);
  if (moofs.length > 1 || mdats.length > 1) {
    throw new AppError('FRAGMENT_IS_CHUNKED', { file: reader.name, moofCount: moofs.length, mdatCount: mdats.length });
  }
  const moov = boxes.find(({ type }) => type === 'moov');
  if (moov !== undefined) throw malformed(reader, moov, 'a fragment cannot hold an init segment; separate them');
  const indexes = new Map<number, Buffer>();
  for (const box of boxes) if (box.type === 'sidx') indexes.set(box.offset, await readTable(reader, box));
  return {
    path: reader.name,
    boxes,
    moof,
    removedBytes: sizeOf(all) - sizeOf(boxes),
    moofWithPositions: await readMoof(reader, moof),
    indexes,
  };
}

function incomplete(reader: PartReader, boxes: readonly TopBox[]): AppError {
  const [first] = boxes;
  const found = boxes.slice(0, 8).map(({ type }) => JSON.stringify(type));
  const problem = found.length === 0 ? 'it is empty' : `it has no moof with an mdat, only ${found.join(', ')}`;
  return malformed(reader, first ?? { type: '', offset: reader.start }, problem);
}

function sizeOf(boxes: readonly TopBox[]): number {
  return boxes.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

async function readTable(reader: PartReader, box: TopBox): Promise<Buffer> {
  if (box.sizeBytes > TABLE_MAX_BYTES) throw malformed(reader, box, `it is larger than ${TABLE_MAX_BYTES} bytes`);
  return await reader.read(box.offset, box.sizeBytes);
}

/** Finds the absolute positions in a moof. Everything else in it counts from the moof or from those positions. */
async function readMoof(reader: PartReader, moof: TopBox): Promise<FragmentLayout['moofWithPositions']> {
  const bytes = await readTable(reader, moof);
  const misfit = (type: string, at: number): never => {
    throw malformed(reader, { type, offset: moof.offset + at }, 'it does not fit into the box around it');
  };
  const baseDataOffsetsAt: number[] = [];
  for (const traf of innerBoxes(bytes, moof.headerSizeBytes, bytes.length, misfit)) {
    if (traf.type !== 'traf') continue;
    for (const box of innerBoxes(bytes, traf.contentStart, traf.end, misfit)) {
      if (box.type !== 'tfhd') continue;
      if (box.contentStart + 8 > box.end) misfit(box.type, box.start);
      if ((bytes.readUInt32BE(box.contentStart) & BASE_DATA_OFFSET_PRESENT) === 0) continue;
      if (box.contentStart + 16 > box.end) misfit(box.type, box.start);
      baseDataOffsetsAt.push(box.contentStart + 8);
    }
  }
  return baseDataOffsetsAt.length === 0 ? null : { bytes, baseDataOffsetsAt };
}
