import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { itemAt } from '#errors/assert.ts';
import type { FragmentReader } from '#provenance/fragment-reader.ts';
import type { Finding, Findings, ValidationResults } from '#provenance/validation-report.ts';
import { type MediaPart, type Rendition, readPart } from '../media-part.ts';
import { describeFinding, type FindingKind, type PartFinding, type VerifiedManifest } from './publication-verdict.ts';
import type { StoredBinding } from './stored-binding.ts';

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
/** Fragments that the reader is given one by one, where our own pass cannot judge how they are bound. */
const MAX_READER_FRAGMENTS = 1000;

const MATCH = 'assertion.bmffHash.match';
const MISMATCH = 'assertion.bmffHash.mismatch';
/** Stands in for a fragment that is too large: an empty box, which no manifest binds. */
const STAND_IN = Buffer.from('0000000866726565', 'hex');
/**
 * Findings that invalidate a manifest. A rendition may be left out by the request's own patterns, unless
 * one stands there without a manifest.
 */
const ALTERATIONS: ReadonlySet<FindingKind> = new Set<FindingKind>([
  'init-altered',
  'altered',
  'missing',
  'added',
  'moved',
]);

/**
 * Returns the official reader's results for a manifest and the parts under it: of a part that was altered where there is one, else
 * of a sample. What it cannot see, because it sees one part at a time (that one is missing or elsewhere), or because a part
 * is too large for it, is put in as our own pass found it, by the same code. Null where it cannot read any.
 */
export async function validateEarlierManifest(
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
  const [alteration] = alterations;
  if (alteration !== undefined) return withMismatch(results, manifest, describeFinding(alteration));
  if (manifest.binding === null) return (await reading.ofAll()) ?? results;
  return isAbout(manifest.binding, results) ? results : withMismatch(results, manifest, 'the binding is ambiguous');
}

/** Returns true when the reader looked at the same binding as our own pass. */
function isAbout(binding: StoredBinding, { activeManifest }: ValidationResults): boolean {
  const { success = [], failure = [] } = activeManifest ?? {};
  const urls = [...success, ...failure].filter(({ code }) => code === MATCH || code === MISMATCH).map(({ url }) => url);
  return urls.length > 0 && urls.every((url) => url === urlOfBinding(binding));
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
    const init = rendition === undefined ? null : await this.#bytesOf(rendition.init);
    if (init === null) return null;
    const results = await this.#validate(init, STAND_IN);
    if (results === null) return null;
    return binding === null ? without(results, MISMATCH) : withMatch(results, binding);
  }

  /**
   * Returns the results for the first fragment with a mismatch; null when every fragment matches. When there are too many
   * fragments, or one is too large, the results leave open whether they are bound.
   */
  async ofAll(): Promise<ValidationResults | null> {
    const all = this.#renditions.flatMap(({ init, fragments }) => fragments.map((part) => ({ init, part })));
    const read = await mapConcurrent(all.slice(0, MAX_READER_FRAGMENTS), this.#parts.reader.maxConcurrency, (one) =>
      this.#read(one.init, one.part),
    );
    const failed = read.find((results) => hasCode(results?.activeManifest?.failure, MISMATCH));
    if (failed !== undefined) return failed;
    if (all.length === read.length && read.every((results) => hasCode(results?.activeManifest?.success, MATCH))) {
      return null;
    }
    const [first] = read;
    return first == null ? null : without(first, MATCH);
  }

  async #read(init: MediaPart, part: MediaPart): Promise<ValidationResults | null> {
    const initBytes = await this.#bytesOf(init);
    const bytes = initBytes === null ? null : await this.#bytesOf(part);
    if (initBytes === null || bytes === null) return null;
    return await this.#validate(initBytes, bytes);
  }

  #validate(init: Uint8Array, fragment: Uint8Array): Promise<ValidationResults | null> {
    const { reader, anchors } = this.#parts;
    return reader.validationResults(init, fragment, anchors, this.#signal);
  }

  #bytesOf(part: MediaPart): Promise<Uint8Array | null> {
    return readPart(this.#parts.folder, part, this.#signal);
  }
}

function hasCode(findings: readonly Finding[] | undefined, code: string): boolean {
  return findings?.some((finding) => finding.code === code) ?? false;
}

/** Counts the failures of a reading; -1 for a part that could not be read. */
function failureCount(results: ValidationResults | null): number {
  return results === null ? -1 : (results.activeManifest?.failure.length ?? 0);
}

/** Returns the results with a mismatch of the binding instead of its match, unless the reader found one itself. */
function withMismatch(results: ValidationResults, manifest: VerifiedManifest, explanation: string): ValidationResults {
  if (hasCode(results.activeManifest?.failure, MISMATCH)) return results;
  const rest = without(results, MATCH);
  const finding = { code: MISMATCH, ...urlOf(results, manifest), explanation };
  return edited(rest, ({ failure, ...others }) => ({ ...others, failure: [...failure, finding] }));
}

function withMatch(results: ValidationResults, binding: StoredBinding): ValidationResults {
  const rest = without(results, MISMATCH);
  const finding = { code: MATCH, url: urlOfBinding(binding), explanation: 'BMFF hash valid' };
  return edited(rest, ({ success, ...others }) => ({ ...others, success: [...success, finding] }));
}

/** Returns the JUMBF URI of a binding in its store. */
function urlOfBinding({ manifest, assertion }: StoredBinding): string {
  return `self#jumbf=/c2pa/${manifest}/c2pa.assertions/${assertion}`;
}

function urlOf(results: ValidationResults, { binding }: VerifiedManifest): Pick<Finding, 'url'> {
  if (binding !== null) return { url: urlOfBinding(binding) };
  const { success = [], failure = [] } = results.activeManifest ?? {};
  const url = [...success, ...failure].find(({ code }) => code === MATCH || code === MISMATCH)?.url;
  return url === undefined ? {} : { url };
}

function without(results: ValidationResults, unwanted: string): ValidationResults {
  const others = (findings: readonly Finding[]) => findings.filter(({ code }) => code !== unwanted);
  return edited(results, ({ success, failure, ...rest }) => ({
    ...rest,
    success: others(success),
    failure: others(failure),
  }));
}

function edited(results: ValidationResults, edit: (findings: Findings) => Findings): ValidationResults {
  return results.activeManifest === undefined ? results : { ...results, activeManifest: edit(results.activeManifest) };
}
