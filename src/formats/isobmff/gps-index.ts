import { type Box, BoxFields } from './boxes.ts';
import type { OffsetCollector } from './stored-offsets.ts';

/** Version and number of entries at the start of the index, 4 bytes each. */
const HEAD_SIZE_BYTES = 8;
/** Offset and size of one entry, 4 bytes each. */
const ENTRY_SIZE_BYTES = 8;

/**
 * Adds the offsets of a `gps ` box in `moov`, by which programs find the positions that a dashcam recorded: those with chips
 * of Novatek put them into `free` boxes between the media, and list these. No specification describes the box, so one that is
 * not exactly such a list, or leads out of the file, is left alone.
 */
export function addGpsOffsets(gps: Box, fileSizeBytes: number, offsets: OffsetCollector): void {
  const { bytes, header } = gps;
  const start = header.headerSizeBytes + HEAD_SIZE_BYTES;
  if (bytes.length < start) return;
  const fields = new BoxFields(gps);
  fields.skip(4); // version
  const count = fields.uint(4);
  if (bytes.length !== start + count * ENTRY_SIZE_BYTES) return;
  for (let at = start; at < bytes.length; at += ENTRY_SIZE_BYTES) {
    if (bytes.readUInt32BE(at) + bytes.readUInt32BE(at + 4) > fileSizeBytes) return;
  }
  offsets.addTable(gps, fields, { count, widthBytes: 4, strideBytes: ENTRY_SIZE_BYTES });
}
