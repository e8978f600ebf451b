import type { Box } from './box.ts';
import { BoxFields } from './box-fields.ts';
import type { OffsetCollector } from './offset-collector.ts';

/** Flags of a track fragment header (ISO/IEC 14496-12 §8.8.7) and of a track run (§8.8.8). */
const HAS_BASE_DATA_OFFSET = 0x000001;
const HAS_DATA_OFFSET = 0x000001;

/**
 * Adds the absolute offsets of a movie fragment: the base data offsets of its tracks. Everything else in it counts from
 * these, or from the start of the `moof` box itself, and moves along.
 */
export function addFragmentOffsets(moof: Box, offsets: OffsetCollector): void {
  for (const traf of moof.descendants('traf')) {
    const tfhd = traf.descendant('tfhd');
    if (tfhd === undefined) continue;
    const fields = new BoxFields(tfhd);
    const { flags } = fields.versionAndFlags();
    if ((flags & HAS_BASE_DATA_OFFSET) === 0) continue;
    fields.skip(4); // the track id
    const position = fields.offset;
    const value = fields.uint(8);
    // A base may be any place, even 0, since the runs of samples say how far from it they are.
    const targets = [value + firstDataOffset(traf)];
    offsets.addField(tfhd, { position, widthBytes: 8, value, targets });
  }
}

function firstDataOffset(traf: Box): number {
  const trun = traf.descendant('trun');
  if (trun === undefined) return 0;
  const fields = new BoxFields(trun);
  const { flags } = fields.versionAndFlags();
  if ((flags & HAS_DATA_OFFSET) === 0) return 0;
  fields.skip(4); // the sample count
  return fields.int32();
}

/** Adds the offsets of movie fragments in a random access box (`mfra`; ISO/IEC 14496-12 §8.8.9 to §8.8.11). */
export function addRandomAccessOffsets(mfra: Box, offsets: OffsetCollector): void {
  for (const tfra of mfra.descendants('tfra')) {
    const fields = new BoxFields(tfra);
    const { version } = fields.versionAndFlags();
    fields.skip(4); // the track id
    const lengths = fields.uint(4);
    const count = fields.uint(4);
    const widthBytes = version === 1 ? 8 : 4;
    const numbersSizeBytes = [lengths >> 4, lengths >> 2, lengths].reduce((sum, bits) => sum + (bits & 3) + 1, 0);
    if (count > 0) fields.skip(widthBytes); // the time of the first entry; its offset follows
    offsets.addTable(tfra, fields, { count, widthBytes, strideBytes: 2 * widthBytes + numbersSizeBytes });
  }
}
