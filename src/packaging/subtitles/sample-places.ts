import type { Box } from '#formats/isobmff/box.ts';
import { BoxFields } from '#formats/isobmff/box-fields.ts';

/** Where a sample lies in its file, in bytes, and when it is shown, in ticks of its track. */
export interface SamplePlace {
  readonly start: number;
  readonly duration: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** The samples in a sample table (ISO/IEC 14496-12 §8.5), one after the other: a table may claim four billion. */
export function* placesInTable(stbl: Box): Generator<SamplePlace> {
  const durations = durationsIn(stbl.descendant('stts'));
  const sizes = sizesIn(stbl.descendant('stsz'));
  let start = 0;
  for (const chunk of chunksIn(stbl)) {
    let { offset } = chunk;
    for (let count = 0; count < chunk.sampleCount; count += 1) {
      const [duration, sizeBytes] = [durations.next().value, sizes.next().value];
      if (duration === undefined || sizeBytes === undefined) return;
      yield { start, duration, offset, sizeBytes };
      start += duration;
      offset += sizeBytes;
    }
  }
}

function* durationsIn(stts: Box | undefined): Generator<number, undefined> {
  if (stts === undefined) return;
  const { fields, count } = tableOf(stts);
  for (let entry = 0; entry < count; entry += 1) {
    const [sampleCount, duration] = [fields.uint(4), fields.uint(4)];
    for (let sample = 0; sample < sampleCount; sample += 1) yield duration;
  }
}

function* sizesIn(stsz: Box | undefined): Generator<number, undefined> {
  if (stsz === undefined) return;
  const fields = new BoxFields(stsz);
  fields.versionAndFlags();
  const [common, count] = [fields.uint(4), fields.uint(4)];
  for (let sample = 0; sample < count; sample += 1) yield common === 0 ? fields.uint(4) : common;
}

/** Runs of chunks of equal numbers of samples (§8.7.4), and where each chunk lies (§8.7.5). */
function* chunksIn(stbl: Box): Generator<{ readonly offset: number; readonly sampleCount: number }> {
  const stsc = stbl.descendant('stsc');
  const co64 = stbl.descendant('co64');
  const offsetsBox = co64 ?? stbl.descendant('stco');
  if (stsc === undefined || offsetsBox === undefined) return;
  const { fields: runs, count: runCount } = tableOf(stsc);
  const { fields: offsets, count: chunkCount } = tableOf(offsetsBox);
  let runsRead = 0;
  const readRun = (): { firstChunk: number; sampleCount: number } | null => {
    if (runsRead === runCount) return null;
    runsRead += 1;
    const run = { firstChunk: runs.uint(4), sampleCount: runs.uint(4) };
    runs.skip(4); // the number of the sample description
    return run;
  };
  let sampleCount = 0;
  let next = readRun();
  for (let chunk = 1; chunk <= chunkCount; chunk += 1) {
    if (next !== null && chunk >= next.firstChunk) {
      sampleCount = next.sampleCount;
      next = readRun();
    }
    yield { offset: offsets.uint(co64 === undefined ? 4 : 8), sampleCount };
  }
}

function tableOf(box: Box): { readonly fields: BoxFields; readonly count: number } {
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  return { fields, count: fields.uint(4) };
}
