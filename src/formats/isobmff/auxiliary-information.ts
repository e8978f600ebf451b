import { type Box, BoxFields } from './boxes.ts';
import { HAS_BASE_DATA_OFFSET, type MediaRange } from './media-boxes.ts';

// Auxiliary information says how samples are encrypted, and so what plays (ISO/IEC 23001-7 §7). It lies wherever `saio` says.

/** Flag of `saio` and `saiz`: the kind of information and its parameter are stated (ISO/IEC 14496-12 §8.7.8 and §8.7.9). */
const HAS_TYPE = 1;

/** Yields the auxiliary information of a track's samples. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
export function* auxiliaryOfTrack(trak: Box): Generator<MediaRange> {
  for (const stbl of trak.descendants('mdia', 'minf', 'stbl')) yield* auxiliaryIn(stbl, 0, []);
}

/** Yields the auxiliary information of the samples of a movie fragment. Throws as `auxiliaryOfTrack` does. */
export function* auxiliaryOfFragment(moof: Box): Generator<MediaRange> {
  for (const traf of moof.descendants('traf')) {
    if (traf.descendant('saio') === undefined) continue;
    yield* auxiliaryIn(traf, baseOf(traf, moof), [...traf.descendants('trun')].map(sampleCountOf));
  }
}

/** `counts` are the samples of each run; where the places of more or fewer runs are stated, each is taken for that of all samples. */
function* auxiliaryIn(parent: Box, base: number, counts: readonly number[]): Generator<MediaRange> {
  const tables = [...parent.descendants('saiz')];
  for (const [index, saio] of [...parent.descendants('saio')].entries()) {
    const offsets = offsetsIn(saio);
    const table = tables[index] ?? tables[0];
    const isByRun = offsets.length > 1 && offsets.length === counts.length;
    const totalBytes = table === undefined ? 1 : sizesOf(table)(Number.POSITIVE_INFINITY);
    const sizes = table !== undefined && isByRun ? sizesOf(table) : () => totalBytes;
    for (const [run, offset] of offsets.entries()) {
      const start = base + offset;
      yield { start, end: start + sizes(counts[run] ?? 0) };
    }
  }
}

function baseOf(traf: Box, moof: Box): number {
  const tfhd = traf.descendant('tfhd');
  if (tfhd === undefined) return moof.header.offset;
  const fields = new BoxFields(tfhd);
  const { flags } = fields.versionAndFlags();
  fields.skip(4); // track_ID
  return (flags & HAS_BASE_DATA_OFFSET) === 0 ? moof.header.offset : fields.uint(8);
}

function sampleCountOf(trun: Box): number {
  const fields = new BoxFields(trun);
  fields.versionAndFlags();
  return fields.uint(4);
}

function offsetsIn(saio: Box): readonly number[] {
  const { fields, version } = fieldsOf(saio);
  const offsets: number[] = [];
  for (let left = fields.uint(4); left > 0; left -= 1) offsets.push(fields.uint(version === 0 ? 4 : 8));
  return offsets;
}

/** Returns a function for the size of the information of that many further samples together. */
function sizesOf(saiz: Box): (count: number) => number {
  const { fields } = fieldsOf(saiz);
  const each = fields.uint(1);
  let left = fields.uint(4);
  return (count) => {
    const taken = Math.min(count, left);
    left -= taken;
    if (each > 0) return taken * each;
    let sizeBytes = 0;
    for (let samples = taken; samples > 0; samples -= 1) sizeBytes += fields.uint(1);
    return sizeBytes;
  };
}

function fieldsOf(box: Box): { readonly fields: BoxFields; readonly version: number } {
  const fields = new BoxFields(box);
  const { version, flags } = fields.versionAndFlags();
  if ((flags & HAS_TYPE) !== 0) fields.skip(8);
  return { fields, version };
}
