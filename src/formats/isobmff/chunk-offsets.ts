import { AppError } from '#errors/app-error.ts';
import type { Box } from './box.ts';
import { BoxFields } from './box-fields.ts';
import type { OffsetCollector } from './offset-collector.ts';

/** In a data reference: the media is in this file (ISO/IEC 14496-12 §8.7.2). */
const SELF_CONTAINED = 1;
/** Bytes of a sample entry's header before its data reference index (§8.5.2.2): a box header and 6 reserved bytes. */
const RESERVED_SIZE_BYTES = 6;

/**
 * Adds the absolute offsets of a track's sample table: chunk offsets (`stco`, `co64`; ISO/IEC 14496-12 §8.7.5) and those
 * of auxiliary information (`saio`, §8.7.9). A track whose media is in other files has none that concern this one: false is
 * returned for it.
 */
export function addTrackOffsets(trak: Box, offsets: OffsetCollector): boolean {
  const minf = trak.descendant('mdia', 'minf');
  if (minf === undefined) return true;
  if (isExternal(minf)) return false;
  for (const box of minf.descendants('stbl', 'stco'))
    addChunkOffsets(box, offsets, { widthBytes: 4, isGrowable: true });
  for (const box of minf.descendants('stbl', 'co64')) addChunkOffsets(box, offsets, { widthBytes: 8 });
  for (const box of minf.descendants('stbl', 'saio')) addAuxiliaryOffsets(box, offsets);
  return true;
}

function addChunkOffsets(box: Box, offsets: OffsetCollector, shape: { widthBytes: 4 | 8; isGrowable?: boolean }): void {
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  offsets.addTable(box, fields, { count: fields.uint(4), ...shape });
}

/** In a sample table these are absolute; in a track fragment they count from its base and move along with it. */
function addAuxiliaryOffsets(box: Box, offsets: OffsetCollector): void {
  const fields = new BoxFields(box);
  const { version, flags } = fields.versionAndFlags();
  // The type of the information and its parameter.
  if ((flags & 1) !== 0) fields.skip(8);
  offsets.addTable(box, fields, { count: fields.uint(4), widthBytes: version === 0 ? 4 : 8 });
}

/** Whether a track's media is in other files. Throws where only a part of it is. */
function isExternal(minf: Box): boolean {
  const dref = minf.descendant('dinf', 'dref');
  const stsd = minf.descendant('stbl', 'stsd');
  if (dref === undefined || stsd === undefined) return false;
  const isReferenceExternal = externalReferences(dref);
  if (!isReferenceExternal.includes(true)) return false;
  const isEntryExternal = [...stsd.children(8)].map((entry) => {
    const fields = new BoxFields(entry);
    fields.skip(RESERVED_SIZE_BYTES);
    return isReferenceExternal[fields.uint(2) - 1] ?? false;
  });
  if (!isEntryExternal.includes(true)) return false;
  if (isEntryExternal.includes(false)) {
    throw new AppError('BMFF_DATA_REFERENCES_MIXED', { name: minf.fileName, offset: dref.header.offset });
  }
  return true;
}

/** A reference that names no place leads nowhere else, whatever its flag says: players read this file then. */
function externalReferences(dref: Box): boolean[] {
  return [...dref.children(8)].map((reference) => {
    const fields = new BoxFields(reference);
    const { flags } = fields.versionAndFlags();
    return (flags & SELF_CONTAINED) === 0 && reference.bytes.subarray(fields.position).some((byte) => byte !== 0);
  });
}

/** For each data reference of a `dinf` box whether it leads to another file; the index counts from 1. */
export function externalReferencesIn(dinf: Box | undefined): readonly boolean[] {
  const dref = dinf?.descendant('dref');
  return dref === undefined ? [] : externalReferences(dref);
}
