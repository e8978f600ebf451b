import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { itemAt } from '#errors/assert.ts';
import { refuseCostlyChain } from '#provenance/chain-limits.ts';
import type { FragmentReader, FragmentReading } from '#provenance/official-reader.ts';
import { type MediaPart, readPart } from '../media-part.ts';
import { STAND_IN, verdictOf, withMatch } from './binding-results.ts';
import type { ListedRendition } from './listed-renditions.ts';
import type { StoredBinding } from './stored-binding.ts';
import { positionIn, type ReadManifest } from './verify-parts.ts';
import type { RenditionReading, VerifiedRendition } from './verify-renditions.ts';

/** Of the fragments that the official reader reads of a rendition, those that our own engine finds altered or foreign. */
const MAX_SAMPLED_FAULTS = 4;

/** A fragment as the official reader sees it. */
export interface OfficialReading {
  readonly rendition: number;
  readonly part: MediaPart;
  /** True of the one reading of each manifest with a full report. */
  readonly isFull: boolean;
  readonly reading: FragmentReading;
}

/** The official reader, and what it reads. */
export interface OfficialTask {
  readonly folder: Pick<SourceFolder, 'open' | 'name'>;
  readonly signal: AbortSignal;
  readonly reader: FragmentReader;
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
  /** Fragments of each rendition that are read; infinite for all. */
  readonly sampleSize: number;
  /** Fragments that are read in all. */
  readonly maxReadings?: number;
  onRead?(): void;
}

/** A rendition as it was read, to be read by the official reader. */
export interface ReadableRendition extends Pick<RenditionReading, 'read' | 'map'> {
  readonly listed: Pick<ListedRendition, 'init' | 'present'>;
}

/** Collects what the official reader finds in a publication: every init segment, with fragments of its rendition. */
export class OfficialReadings {
  readonly readings: OfficialReading[] = [];
  readonly #manifests: readonly ReadManifest[];
  readonly #task: OfficialTask;
  readonly #described = new Set<number>();

  constructor(manifests: readonly ReadManifest[], task: OfficialTask) {
    this.#manifests = manifests;
    this.#task = task;
  }

  /**
   * Reads a rendition under its init segment: of each manifest the first fragment that is not too large with a full
   * report, which describes the chain. Throws `MANIFEST_TOO_COMPLEX`.
   */
  async add(rendition: number, candidate: ReadableRendition): Promise<void> {
    const { folder, reader, sampleSize, maxReadings, anchors, signal, onRead } = this.#task;
    const manifest = candidate.read?.manifest ?? null;
    if (manifest === null) return;
    if (!this.#described.has(manifest)) refuseCostlyChain(folder.name, itemAt(this.#manifests, manifest).store);
    const left = maxReadings && maxReadings - this.readings.length;
    const chosen = chosenParts(candidate, sampleSize).slice(0, left);
    const init = await readPart(folder, candidate.listed.init, signal);
    if (init === null || chosen.length === 0) return;
    // One thread, of 40 MB, keeps up with the hashing where it reads a sample only.
    const threads = chosen.length > MAX_SAMPLED_FRAGMENTS ? reader.maxConcurrency : 1;
    const read = await mapConcurrent(chosen, threads, async (part) => {
      const bytes = await readPart(folder, part, signal);
      if (bytes === null) return [];
      const isFull = !this.#described.has(manifest);
      this.#described.add(manifest);
      const reading = await reader.read(init, bytes, { answer: isFull ? 'report' : 'results', anchors }, signal);
      onRead?.();
      return [{ rendition, part, isFull, reading }];
    });
    this.readings.push(...read.flat());
  }

  /**
   * Reads the manifests of which no fragment was read because each is too large, where our own engine knows how they
   * are bound. Returns the readings by the numbers of the manifests.
   */
  async readAlone(renditions: readonly VerifiedRendition[]): Promise<Map<number, FragmentReading>> {
    const readings = new Map<number, FragmentReading>();
    for (const { listed, read } of renditions) {
      if (read === null || read.manifest === null || read.binding === null) continue;
      if (this.#described.has(read.manifest) || listed.present.fragments.length === 0) continue;
      const reading = await this.readStandIn(listed.init);
      if (reading === null) continue;
      this.#described.add(read.manifest);
      const under = renditions.filter((other) => other.read?.manifest === read.manifest);
      const isIntact = under.every(({ map, deviations }) => map !== null && deviations.length === 0);
      readings.set(read.manifest, isIntact ? asBound(reading, read.binding) : reading);
    }
    return readings;
  }

  /** Reads the manifest of an init segment with a stand-in for its fragments; null where it is too large. */
  async readStandIn(init: MediaPart): Promise<FragmentReading | null> {
    const { folder, reader, anchors, signal, onRead } = this.#task;
    const bytes = await readPart(folder, init, signal);
    if (bytes === null) return null;
    const reading = await reader.read(bytes, STAND_IN, { answer: 'report', anchors }, signal);
    onRead?.();
    return reading;
  }
}

/** Returns the reading of a stand-in as that of fragments that our own engine found bound. */
function asBound(reading: FragmentReading, binding: StoredBinding): FragmentReading {
  if ('problem' in reading || reading.validation_results === undefined) return reading;
  const results = withMatch(reading.validation_results, binding);
  return { ...reading, validation_results: results, validation_state: verdictOf(results) };
}

/**
 * Chooses fragments, first those that are bound: evenly over the programme, with the first and the last. A rendition that our
 * own engine cannot verify is read completely.
 */
function chosenParts({ listed, read, map }: ReadableRendition, sampleSize: number): MediaPart[] {
  const { fragments } = listed.present;
  const isSound = (index: number) => positionIn(map, read?.fragments[index]?.found) !== undefined;
  const sound = fragments.filter((_part, index) => isSound(index));
  const faulty = fragments.filter((_part, index) => !isSound(index));
  if (sampleSize === Number.POSITIVE_INFINITY || map === null) return [...sound, ...faulty];
  const sampledFaults = faulty.slice(0, MAX_SAMPLED_FAULTS);
  return [...sampleOf(sound, Math.max(sampleSize - sampledFaults.length, 2)), ...sampledFaults];
}

/** Fragments of a rendition that the official reader is given, where it is not given all. */
export const MAX_SAMPLED_FRAGMENTS = 16;

/** Returns up to `count` items, at least two, at even distances: the first and the last are among them. */
export function sampleOf<Item>(items: readonly Item[], count = MAX_SAMPLED_FRAGMENTS): Item[] {
  if (items.length <= count) return [...items];
  const step = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, index) => itemAt(items, Math.round(index * step)));
}
