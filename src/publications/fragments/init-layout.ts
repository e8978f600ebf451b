import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import {
  type Box,
  type DefaultSizes,
  defaultSizesOf,
  fieldBehindTimes,
  handlerTypeIn,
  straySamplesOfInit,
} from '#formats/isobmff-boxes.ts';
import type { ByteRange } from '../media-part.ts';
import {
  beginsOtherContainer,
  isC2paBox,
  listTopBoxes,
  malformed,
  manifestIn,
  type PartReader,
  readBox,
  refuseStray,
  refuseStrayTables,
  type TopBox,
} from './top-boxes.ts';

/** The layout of an init segment. */
export interface InitLayout {
  readonly path: string;
  /** True when it is a byte range of a larger file, and so becomes a file of its own. */
  readonly isRange: boolean;
  /** Top-level boxes in order, without those of C2PA and indexes of fragments, which no hash covers. */
  readonly boxes: readonly TopBox[];
  /** The `moov` box, where it says how samples are encrypted (ffmpeg): by offsets, which move with it. */
  readonly offsetMovie: Box | null;
  /** `track_ID` of the first track. */
  readonly firstTrackId: number;
  /** Those of all tracks, in order. */
  readonly trackIds: readonly number[];
  /** Sizes of samples by track, where a fragment states none. */
  readonly sampleSizes: DefaultSizes;
  /** The handler type of every track that says one, such as `vide` or `soun` (ISO/IEC 14496-12 §8.4.3). */
  readonly handlers: readonly string[];
  /** The manifest store of an earlier signing, as a byte range of the file. */
  readonly manifest: ByteRange | null;
}

/** A moov of an init segment holds no sample tables; one larger than this is none. */
const MAX_MOOV_BYTES = 16 * 1024 * 1024;

/**
 * Reads the layout of an init segment: a moov, no media. Throws `SEGMENTS_NEED_PACKAGING` for one of another container, and
 * `FRAGMENT_MALFORMED` or `BMFF_…`.
 */
export async function readInitLayout(reader: PartReader): Promise<InitLayout> {
  if (await beginsOtherContainer(reader)) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: reader.name });
  const all = await listTopBoxes(reader);
  const boxes = all.filter((box) => !isC2paBox(box) && box.type !== 'mfra');
  const moov = boxes.find(({ type }) => type === 'moov');
  if (moov === undefined)
    throw malformed(reader, all[0] ?? { type: '', offset: reader.start }, 'an init segment needs a moov');
  const media = boxes.find(({ type }) => type === 'moof' || type === 'mdat');
  if (media !== undefined) {
    const problem = 'an init segment holds no media; name its byte ranges in a playlist, or sign it as a video file';
    throw malformed(reader, media, problem);
  }
  const ftyp = boxes.findLastIndex(({ type }) => type === 'ftyp');
  if (ftyp > 0) throw malformed(reader, itemAt(boxes, ftyp), 'it must be the first box');
  const manifests = all.filter(isC2paBox).map(manifestIn);
  const searched = await refuseStrayTables(reader, boxes, MAX_MOOV_BYTES);
  refuseStray(reader, straySamplesOfInit(searched));
  const { trackIds, handlers, sampleSizes, offsetMovie } = await readTracks(reader, moov);
  const [firstTrackId] = trackIds;
  if (firstTrackId === undefined) throw malformed(reader, moov, 'it has no track');
  return {
    path: reader.name,
    isRange: reader.isRange,
    boxes,
    offsetMovie,
    firstTrackId,
    trackIds,
    handlers,
    sampleSizes,
    manifest: manifests.find((manifest) => manifest !== null) ?? null,
  };
}

async function readTracks(
  reader: PartReader,
  moov: TopBox,
): Promise<Pick<InitLayout, 'trackIds' | 'handlers' | 'sampleSizes' | 'offsetMovie'>> {
  const box = await readBox(reader, moov, MAX_MOOV_BYTES);
  return {
    trackIds: [...box.descendants('trak', 'tkhd')].map(fieldBehindTimes),
    handlers: [...box.descendants('trak', 'mdia', 'hdlr')].map(handlerTypeIn),
    sampleSizes: defaultSizesOf(box),
    offsetMovie: box.descendant('trak', 'mdia', 'minf', 'stbl', 'saio') === undefined ? null : box,
  };
}
