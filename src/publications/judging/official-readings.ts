import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import type { FragmentReader, FragmentReading } from '#provenance/fragment-reader.ts';
import { MAX_SAMPLED_FRAGMENTS, sampleOf } from '../checking/sample-fragments.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import type { JudgedRendition } from './judge-renditions.ts';

/** Of those, the ones that our own engine finds fault with. */
const MAX_SAMPLED_DEVIATIONS = 4;
/** The reader holds an init segment and a fragment in memory; larger ones are judged by our own engine alone. */
const MAX_PART_BYTES = 64 * 1024 * 1024;

/** A fragment as the official reader sees it. */
export interface OfficialReading {
  readonly rendition: number;
  readonly part: MediaPart;
  readonly reading: FragmentReading;
}

/** What the official reader is given, and who it is. */
export interface OfficialTask {
  readonly folder: Pick<SourceFolder, 'open'>;
  readonly reader: FragmentReader;
  /** `full` has it read every fragment. */
  readonly depth: 'sample' | 'full';
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
  readonly signal: AbortSignal;
  onRead(): void;
}

/**
 * Has the official reader read every init segment with fragments of its rendition: of each manifest the first with a full
 * report, which describes the chain. Renditions that our own engine cannot judge are read completely.
 */
export async function readOfficially(
  renditions: readonly JudgedRendition[],
  task: OfficialTask,
): Promise<OfficialReading[]> {
  const readings: OfficialReading[] = [];
  const described = new Set<number>();
  for (const [number, rendition] of renditions.entries()) {
    const manifest = rendition.read?.manifest ?? null;
    if (manifest === null) continue;
    const init = await bytesOf(rendition.stated.init, task);
    if (init === null) continue;
    const isFirst = !described.has(manifest);
    described.add(manifest);
    const chosen = chosenParts(rendition, task.depth);
    const read = await mapConcurrent(chosen, task.reader.maxConcurrency, async (part) => {
      const bytes = await bytesOf(part, task);
      if (bytes === null) return [];
      const detail = isFirst && part === chosen[0] ? 'full' : 'results';
      const reading = await task.reader.read(init, bytes, { detail, anchors: task.anchors }, task.signal);
      task.onRead();
      return [{ rendition: number, part, reading }];
    });
    readings.push(...read.flat());
  }
  return readings;
}

/** Chooses fragments, intact ones first: evenly over the programme, with the first and the last. */
function chosenParts({ stated, map, intact, deviations }: JudgedRendition, depth: 'sample' | 'full'): MediaPart[] {
  const { fragments } = stated.present;
  const sound = fragments.filter((part) => intact.has(partKey(part)));
  const others = fragments.filter((part) => !intact.has(partKey(part)));
  if (depth === 'full' || map === null) return [...sound, ...others];
  const wrong = new Set(deviations.flatMap(({ file }) => (file === null ? [] : [partKey(file)])));
  const faulty = others.filter((part) => wrong.has(partKey(part))).slice(0, MAX_SAMPLED_DEVIATIONS);
  return [...sampleOf(sound, MAX_SAMPLED_FRAGMENTS - faulty.length), ...faulty];
}

async function bytesOf({ path, range }: MediaPart, { folder, signal }: OfficialTask): Promise<Uint8Array | null> {
  const source = await folder.open(path, signal);
  try {
    const { offset, length } = range ?? { offset: 0, length: source.sizeBytes };
    return length > MAX_PART_BYTES ? null : await readRange(source, offset, length, signal);
  } finally {
    await source.close();
  }
}
