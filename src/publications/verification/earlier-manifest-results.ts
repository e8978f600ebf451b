import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { itemAt } from '#errors/assert.ts';
import type { FragmentReader } from '#provenance/official-reader.ts';
import type { ValidationResults } from '#provenance/validation-report.ts';
import { type MediaPart, type Rendition, readPart } from '../media-part.ts';
import {
  hasCode,
  isAbout,
  MATCH,
  MISMATCH,
  STAND_IN,
  withIncomplete,
  withMatch,
  withMismatch,
  without,
} from './binding-results.ts';
import { describeFinding, type FindingKind, type PartFinding, type VerifiedManifest } from './publication-verdict.ts';

/** The publication that the official reader reads parts of. */
interface ReadParts {
  readonly folder: Pick<SourceFolder, 'open'>;
  readonly renditions: readonly Rendition[];
  readonly reader: FragmentReader;
  /** Trust anchors in PEM that the manifest is validated with; null for none. */
  readonly anchors: string | null;
  /** True when a rendition has no manifest: where one of this manifest is missing, it lost its own. */
  readonly hasUnsigned: boolean;
}

/** Renditions of which the reader is given the first fragment and the last; a read takes some ten milliseconds. */
const MAX_SAMPLED_RENDITIONS = 16;
/** Fragments that the reader is given one by one, where our own pass cannot verify how they are bound. */
const MAX_READER_FRAGMENTS = 1000;

/**
 * Findings that invalidate a manifest. A rendition may be left out by the request's own patterns, unless
 * one stands there without a manifest.
 */
const ALTERATIONS: ReadonlySet<FindingKind> = new Set(['init-altered', 'altered', 'missing', 'added', 'moved']);

/**
 * Returns the official reader's results for a manifest and the parts under it: of a part that was altered where there
 * is one, else of a sample. A part that is too large for the reader is put in as our own pass found it, by the same code.
 * A code of this service says that a part is missing or elsewhere, which the reader cannot see. Null where it
 * cannot read any.
 */
export async function resultsOfEarlierManifest(
  manifest: VerifiedManifest,
  findings: readonly PartFinding[],
  parts: ReadParts,
  signal: AbortSignal,
): Promise<ValidationResults | null> {
  const alterations = findings.filter(
    ({ kind }) => ALTERATIONS.has(kind) || (kind === 'rendition-missing' && parts.hasUnsigned),
  );
  const reading = new Reading(manifest, parts, signal);
  const ofAltered = await reading.ofAltered(alterations);
  const results = ofAltered ?? (await reading.ofSample()) ?? (await reading.ofStandIn());
  if (results === null || results.activeManifest === undefined) return results;
  if (hasCode(results.activeManifest.failure, MISMATCH)) return results;
  const altered = alterations.find(({ kind }) => kind === 'altered' || kind === 'init-altered');
  if (altered !== undefined) return withMismatch(results, manifest.binding, describeFinding(altered));
  const [incomplete] = alterations;
  if (incomplete !== undefined) return withIncomplete(results, describeFinding(incomplete));
  if (manifest.binding === null) return await reading.ofAll(results);
  return isAbout(manifest.binding, results)
    ? results
    : withMismatch(results, manifest.binding, 'the binding is ambiguous');
}

class Reading {
  readonly #manifest: VerifiedManifest;
  readonly #parts: ReadParts;
  readonly #signal: AbortSignal;

  constructor(manifest: VerifiedManifest, parts: ReadParts, signal: AbortSignal) {
    this.#manifest = manifest;
    this.#parts = parts;
    this.#signal = signal;
  }

  get #renditions(): Rendition[] {
    return this.#manifest.renditions.map((index) => itemAt(this.#parts.renditions, index));
  }

  /** Returns the results for the first altered part that the reader also finds at fault; null when there is none. */
  async ofAltered(alterations: readonly PartFinding[]): Promise<ValidationResults | null> {
    for (const { init, kind, parts } of alterations.slice(0, MAX_SAMPLED_RENDITIONS)) {
      const rendition = this.#renditions.find((each) => each.init === init);
      const [part] = kind === 'init-altered' ? (rendition?.fragments ?? []) : parts;
      if (init === null || part === undefined) continue;
      const results = await this.#read(init, part);
      if (results !== null && hasCode(results.activeManifest?.failure, MISMATCH)) return results;
    }
    return null;
  }

  /** Returns the results for the fragment of the sample with the most failures: the first one, unless another has more. */
  async ofSample(): Promise<ValidationResults | null> {
    let best: ValidationResults | null = null;
    for (const { init, fragments } of this.#renditions.slice(0, MAX_SAMPLED_RENDITIONS)) {
      for (const part of new Set([fragments[0], fragments.at(-1)])) {
        const results = part === undefined ? null : await this.#read(init, part);
        if (failureCount(results) > failureCount(best)) best = results;
      }
    }
    return best;
  }

  /** Returns the results for the manifest alone, when all parts are too large. Our own pass decides whether they are bound. */
  async ofStandIn(): Promise<ValidationResults | null> {
    const { binding } = this.#manifest;
    const [rendition] = this.#renditions;
    const results = rendition === undefined ? null : await this.#read(rendition.init, null);
    if (results === null) return null;
    return binding === null ? without(results, MISMATCH) : withMatch(results, binding);
  }

  /**
   * Returns the results for the first fragment with a mismatch, and those of the sample when every fragment matches. When there
   * are too many fragments, or one is too large, the results of the sample leave open whether they are bound.
   */
  async ofAll(sample: ValidationResults): Promise<ValidationResults> {
    const all = this.#renditions.flatMap(({ init, fragments }) => fragments.map((part) => ({ init, part })));
    const read = await mapConcurrent(all.slice(0, MAX_READER_FRAGMENTS), this.#parts.reader.maxConcurrency, (one) =>
      this.#read(one.init, one.part),
    );
    const failed = read.find((results) => hasCode(results?.activeManifest?.failure, MISMATCH));
    if (failed != null) return failed;
    const isMatch =
      all.length === read.length && read.every((results) => hasCode(results?.activeManifest?.success, MATCH));
    return isMatch ? sample : without(sample, MATCH);
  }

  /** Returns the results for a fragment, or for a stand-in where it is null; null where a part is too large to be read. */
  async #read(init: MediaPart, part: MediaPart | null): Promise<ValidationResults | null> {
    const { folder, reader, anchors } = this.#parts;
    const initBytes = await readPart(folder, init, this.#signal);
    if (initBytes === null) return null;
    const bytes = part === null ? STAND_IN : await readPart(folder, part, this.#signal);
    if (bytes === null) return null;
    const reading = await reader.read(initBytes, bytes, { answer: 'results', anchors }, this.#signal);
    return 'problem' in reading ? null : (reading.validation_results ?? null);
  }
}

/** Counts the failures of a reading; -1 for a part that could not be read. */
function failureCount(results: ValidationResults | null): number {
  return results === null ? -1 : (results.activeManifest?.failure.length ?? 0);
}
