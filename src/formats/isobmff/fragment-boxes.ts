import { AppError } from '#errors/app-error.ts';
import { type Box, BoxFields } from './boxes.ts';

/** What a movie says of the samples in the fragments of a track (`trex`, ISO/IEC 14496-12 §8.8.3). */
export interface TrackDefaults {
  readonly trackId: number;
  /** In ticks of the track. */
  readonly sampleDuration: number;
  readonly sampleSizeBytes: number;
}

/** Yields what `mvex` boxes say. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
export function* trackDefaultsIn(mvexes: Iterable<Box>): Generator<TrackDefaults> {
  for (const trex of [...mvexes].flatMap((mvex) => [...mvex.descendants('trex')])) {
    const fields = new BoxFields(trex);
    fields.versionAndFlags();
    const trackId = fields.uint(4);
    fields.skip(4); // default_sample_description_index
    yield { trackId, sampleDuration: fields.uint(4), sampleSizeBytes: fields.uint(4) };
  }
}

/** Header of a track in a fragment (`tfhd`, §8.8.7); null for what it leaves to the movie. */
export interface TrackFragmentHeader {
  readonly trackId: number;
  /** The base of the offsets of runs, counted from the start of the file. */
  readonly baseOffset: number | null;
  /** True where that is the start of the `moof` box, if none is stated. */
  readonly isBasedOnMoof: boolean;
  readonly sampleDuration: number | null;
  readonly sampleSizeBytes: number | null;
}

/** Reads a `tfhd` box. Throws `BMFF_BOX_MALFORMED`. */
export function trackFragmentHeaderOf(tfhd: Box): TrackFragmentHeader {
  const fields = new BoxFields(tfhd);
  const { flags } = fields.versionAndFlags();
  const trackId = fields.uint(4);
  const optional = (flag: number, widthBytes: number) => ((flags & flag) === 0 ? null : fields.uint(widthBytes));
  const baseOffset = optional(0x01, 8);
  optional(0x02, 4); // sample_description_index
  const [sampleDuration, sampleSizeBytes] = [optional(0x08, 4), optional(0x10, 4)];
  return { trackId, baseOffset, isBasedOnMoof: (flags & 0x02_0000) !== 0, sampleDuration, sampleSizeBytes };
}

/** Returns the decoding time of the first sample of a fragment, in ticks (`tfdt`, §8.8.12). Throws `BMFF_BOX_MALFORMED`. */
export function decodeTimeIn(tfdt: Box): number {
  const fields = new BoxFields(tfdt);
  return fields.uint(fields.versionAndFlags().version === 1 ? 8 : 4);
}

/** Fields that a run may state of each sample, by their flags: duration, size, flags and composition offset, 4 bytes each. */
const SAMPLE_FIELDS = [0x100, 0x200, 0x400, 0x800];

/** Run of samples of one track (`trun`, §8.8.8). Fields of samples stand `strideBytes` apart. */
export interface TrackRun {
  readonly sampleCount: number;
  /** Distance of the first sample from the base of the fragment; null where it follows the run before. */
  readonly dataOffset: number | null;
  readonly strideBytes: number;
  /** Positions of the fields of the first sample, counted from the start of the box; null where the run does not state them. */
  readonly durationAt: number | null;
  readonly sizeAt: number | null;
  readonly compositionOffsetAt: number | null;
  readonly hasSignedCompositionOffsets: boolean;
  /** True where the box ends before the fields of its last sample. */
  readonly isCutShort: boolean;
}

/** Reads the beginning of a `trun` box. Throws `BMFF_BOX_MALFORMED` where the box ends before that. */
export function trackRunOf(trun: Box): TrackRun {
  const fields = new BoxFields(trun);
  const { version, flags } = fields.versionAndFlags();
  const sampleCount = fields.uint(4);
  const dataOffset = (flags & 0x01) === 0 ? null : fields.int32();
  const start = fields.position + ((flags & 0x04) === 0 ? 0 : 4); // first_sample_flags
  const stated = SAMPLE_FIELDS.filter((flag) => (flags & flag) !== 0);
  const positionOf = (flag: number) => (stated.includes(flag) ? start + 4 * stated.indexOf(flag) : null);
  const strideBytes = 4 * stated.length;
  return {
    sampleCount,
    dataOffset,
    strideBytes,
    durationAt: positionOf(0x100),
    sizeAt: positionOf(0x200),
    compositionOffsetAt: positionOf(0x800),
    hasSignedCompositionOffsets: version !== 0,
    isCutShort: start + sampleCount * strideBytes > trun.bytes.length,
  };
}

/** `reference_type` and `referenced_size` share 32 bits, size in the lower 31; every reference takes 12 bytes. */
const REFERENCE_SIZE_BYTES = 12;

/** Reads a `trun` box of which every sample is read. Throws `BMFF_BOX_MALFORMED`, also where it is cut short. */
export function wholeRunOf(trun: Box): TrackRun {
  const run = trackRunOf(trun);
  if (!run.isCutShort) return run;
  const { fileName: name, type: boxType, header } = trun;
  const problem = `it counts ${run.sampleCount} samples, and ends before the last one`;
  throw new AppError('BMFF_BOX_MALFORMED', { name, boxType, offset: header.offset, problem });
}

/** Fields of a segment index (`sidx`, ISO/IEC 14496-12 §8.16.3). */
export interface SegmentIndexFields {
  /** Ticks per second. */
  readonly timescale: number;
  /** Presentation time of the first subsegment, in ticks. */
  readonly startTicks: bigint;
  /** Distance from the end of the box to the first subsegment. */
  readonly firstOffset: number;
  readonly references: readonly { isIndex: boolean; sizeBytes: number; durationTicks: number }[];
}

/** Parses the content of a `sidx` box, behind its header; undefined where it is cut short. */
export function parseSegmentIndex(content: Buffer): SegmentIndexFields | undefined {
  const isWide = content[0] !== 0;
  const countAt = isWide ? 30 : 22;
  if (content.length < countAt + 2) return undefined;
  const count = content.readUInt16BE(countAt);
  if (content.length < countAt + 2 + count * REFERENCE_SIZE_BYTES) return undefined;
  const references = Array.from({ length: count }, (_, index) => {
    const at = countAt + 2 + index * REFERENCE_SIZE_BYTES;
    const word = content.readUInt32BE(at);
    return { isIndex: word >>> 31 === 1, sizeBytes: word & 0x7fffffff, durationTicks: content.readUInt32BE(at + 4) };
  });
  return {
    timescale: content.readUInt32BE(8),
    startTicks: isWide ? content.readBigUInt64BE(12) : BigInt(content.readUInt32BE(12)),
    firstOffset: isWide ? Number(content.readBigUInt64BE(20)) : content.readUInt32BE(16),
    references,
  };
}
