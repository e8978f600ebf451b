import { type Box, BoxFields } from './boxes.ts';

/**
 * Returns the 32-bit field behind the creation and modification times of a header: the track id of `tkhd`, the timescale of
 * `mvhd` and `mdhd` (ISO/IEC 14496-12 §8.2.2, §8.3.2, §8.4.2). Throws `BMFF_BOX_MALFORMED`.
 */
export function fieldBehindTimes(header: Box): number {
  const fields = new BoxFields(header);
  fields.skip(fields.versionAndFlags().version === 1 ? 16 : 8);
  return fields.uint(4);
}

/** Returns the handler type of a `hdlr` box, such as `vide` or `soun` (§8.4.3). Throws `BMFF_BOX_MALFORMED`. */
export function handlerTypeIn(hdlr: Box): string {
  const fields = new BoxFields(hdlr);
  fields.skip(8); // version and flags, and pre_defined (QuickTime's component type)
  return fields.text(4);
}

/** Start of an edit list: ticks of the movie without media, and the time of the media behind them in ticks of the track. */
export interface EditStart {
  readonly emptyTicks: number;
  readonly mediaTicks: number;
}

/** Returns the start of a track's edit list (`elst`, §8.6.6); zeros where it has none. Throws `BMFF_BOX_MALFORMED`. */
export function editStartOf(trak: Box): EditStart {
  const elst = trak.descendant('edts', 'elst');
  let emptyTicks = 0;
  if (elst === undefined) return { emptyTicks, mediaTicks: 0 };
  const fields = new BoxFields(elst);
  const widthBytes = fields.versionAndFlags().version === 1 ? 8 : 4;
  const nowhere = 2 ** (8 * widthBytes) - 1;
  for (let count = fields.uint(4); count > 0; count -= 1) {
    const duration = fields.uint(widthBytes);
    const mediaTicks = fields.uint(widthBytes);
    fields.skip(4); // the rate
    if (mediaTicks !== nowhere) return { emptyTicks, mediaTicks };
    emptyTicks += duration;
  }
  return { emptyTicks, mediaTicks: 0 };
}
