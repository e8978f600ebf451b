import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import { itemAt } from '#errors/assert.ts';
import { refuseCostlyChain } from '#provenance/chain-limits.ts';
import type { FragmentReader, FragmentReading } from '#provenance/official-reader.ts';
import { type MediaPart, readPart } from './media-part.ts';
import { MAX_RENDITIONS, refuseBeyond } from './playlists/limits.ts';
import type { PublicationFolder } from './publication-folder.ts';
import { STAND_IN, verdictOf, withMatch } from './verification/binding-results.ts';
import type { ReadInit } from './verification/choices.ts';
import { type Entry, type ListedRendition, readListedPublication } from './verification/listed-renditions.ts';
import { findRedirected } from './verification/playlist-findings.ts';
import type { StoredBinding } from './verification/stored-binding.ts';
import type { UnboundMedia } from './verification/unbound-media.ts';
import { type VerifiedListing, verifyListed } from './verification/verify-listed.ts';
import { MAX_SAMPLED_FRAGMENTS, sampleOf } from './verification/verify-output.ts';
import {
  MAX_STORES_BYTES,
  PartsVerification,
  positionIn,
  type ReadManifest,
  type ReadRendition,
} from './verification/verify-parts.ts';
import type { RenditionReading, VerifiedRendition } from './verification/verify-renditions.ts';
import { mapOf } from './verification/verify-sequence.ts';

export type { PresentationDifference } from './presentation/compare-presentation.ts';
export { PRESENTATION_LABEL } from './presentation/presentation.ts';
export type { NamingText } from './presentation/verify-presentation.ts';
export type { FoundInPlaylist } from './verification/playlist-findings.ts';
export type { UnboundMedia } from './verification/unbound-media.ts';
export { type Deviation, isOfPlaylists } from './verification/verify-renditions.ts';

/** Resources that a publication is verified with. */
interface PublicationVerificationContext {
  readonly signal: AbortSignal;
  readonly reader: FragmentReader;
  /** Fragments that the official reader reads: at most 16 of each rendition, or all. */
  readonly depth: 'sample' | 'full';
  /** Trust anchors in PEM; null for none. */
  readonly anchors: string | null;
  /** Globs of the entries that are verified; null for all. */
  readonly entries: readonly string[] | null;
  progress(bytesDone: number, bytesTotal: number): void;
}

/** A publication compared with what was signed, part by part. */
export interface VerifiedPublication extends VerifiedListing {
  /** The different manifests of its init segments; none where it was never signed. */
  readonly manifests: readonly ReadManifest[];
  /** Media that playlists name beside the renditions, and no manifest binds. */
  readonly unbound: readonly UnboundMedia[];
  readonly official: readonly OfficialReading[];
  /**
   * Readings of the manifests under which every fragment is too large for the official reader, by their numbers. A
   * stand-in was read; our own engine decides whether the binding matches.
   */
  readonly readAlone: ReadonlyMap<number, FragmentReading>;
  /** The playlists that were verified by what players reach from each. */
  readonly entries: readonly Entry[];
}

/**
 * Compares a publication with the manifests in its init segments: every init segment and every fragment that a playlist
 * names, and the order in which each playlist names them. Our own engine hashes all of it once; the official reader
 * validates the manifests with a sample of fragments, or with all. Differences are results, not errors; throws where
 * the folder holds no publication that can be read, and `MANIFEST_TOO_COMPLEX`, `PUBLICATION_TOO_LARGE`.
 */
export async function verifyPublication(
  folder: PublicationFolder,
  context: PublicationVerificationContext,
): Promise<VerifiedPublication> {
  const { signal } = context;
  const publication = await readListedPublication(folder, context.entries, signal);
  const { renditions: listed, unbound } = publication;
  const totalBytes = folder.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const advance = (): void => context.progress(0, totalBytes);
  const verification = new PartsVerification(folder, signal, { verified: advance, maxManifests: MAX_RENDITIONS });
  const { manifests } = verification;
  const official = new OfficialReadings(manifests, { ...context, folder, onRead: advance });
  const candidates = await readRenditions(listed, verification, official);
  for (const { store } of manifests) refuseCostlyChain(folder.name, store);
  const areChosen = context.entries !== null;
  const others = await readOtherInits(publication.otherInits, folder, signal);
  const by = { verification, areChosen, others };
  const listing = await verifyListed(folder, publication, candidates, by, signal);
  const { entries, playlists } = publication;
  // Behind all that opens files.
  const verified = { ...listing, findings: [...listing.findings, ...findRedirected(folder, playlists)] };
  if (manifests.length === 0 || verified.wholeFile !== null) {
    return { ...verified, manifests, entries, unbound: [], official: [], readAlone: new Map() };
  }
  for (const [index, candidate] of candidates.entries()) {
    if (candidate.map === null) await official.add(index, candidate);
  }
  const readAlone = await official.readAlone(verified.renditions);
  return { ...verified, manifests, entries, unbound, official: official.readings, readAlone };
}

/** Refuses a rendition whose manifest is one of too many to be read: it is not one without a manifest. */
function refuseUnread(read: ReadRendition | null): void {
  if (read === null || read.manifest !== null || !read.hasManifest) return;
  refuseBeyond('bytes of different manifests', MAX_STORES_BYTES + 1, MAX_STORES_BYTES);
}

/** Reads init segments that chosen entries do not reach: their manifest may sign the sound of pictures that these offer. */
async function readOtherInits(
  inits: readonly MediaPart[],
  folder: SourceFolder,
  signal: AbortSignal,
): Promise<ReadInit[]> {
  const verification = new PartsVerification(folder, signal, { maxManifests: MAX_RENDITIONS });
  const read = await mapConcurrent(inits.slice(0, MAX_RENDITIONS), 1, async (init) => {
    return { listed: { init }, read: await verification.add({ init, fragments: [] }) };
  });
  return read.filter((each) => each.read.binding !== null);
}

/**
 * Hashes the renditions one after the other. A thread of the official reader reads its sample of one while this thread hashes
 * the next; renditions that our own engine cannot verify are left to be read when all are known.
 */
async function readRenditions(
  listed: readonly ListedRendition[],
  verification: PartsVerification,
  official: OfficialReadings,
): Promise<RenditionReading[]> {
  const [hashing, reading] = [new Semaphore(1), new Semaphore(1)];
  return await mapConcurrent(listed, 2, async (rendition, index) => {
    const { isInitMissing, present } = rendition;
    const read = isInitMissing ? null : await hashing.run(() => verification.add(present));
    refuseUnread(read);
    const candidate = { listed: rendition, read, map: read === null ? null : mapOf(read) };
    if (candidate.map !== null) await reading.run(() => official.add(index, candidate));
    return candidate;
  });
}

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
interface OfficialTask extends Pick<PublicationVerificationContext, 'signal' | 'reader' | 'depth' | 'anchors'> {
  readonly folder: Pick<SourceFolder, 'open' | 'name'>;
  onRead(): void;
}

/** Collects what the official reader finds in a publication: every init segment, with fragments of its rendition. */
class OfficialReadings {
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
  async add(rendition: number, candidate: RenditionReading): Promise<void> {
    const { folder, reader, depth, anchors, signal, onRead } = this.#task;
    const manifest = candidate.read?.manifest ?? null;
    if (manifest === null) return;
    if (!this.#described.has(manifest)) refuseCostlyChain(folder.name, itemAt(this.#manifests, manifest).store);
    const chosen = chosenParts(candidate, depth);
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
      onRead();
      return [{ rendition, part, isFull, reading }];
    });
    this.readings.push(...read.flat());
  }

  /**
   * Reads the manifests of which no fragment was read because each is too large, where our own engine knows how they
   * are bound. Returns the readings by the numbers of the manifests.
   */
  async readAlone(renditions: readonly VerifiedRendition[]): Promise<Map<number, FragmentReading>> {
    const { folder, reader, anchors, signal, onRead } = this.#task;
    const readings = new Map<number, FragmentReading>();
    for (const { listed, read } of renditions) {
      if (read === null || read.manifest === null || read.binding === null) continue;
      if (this.#described.has(read.manifest) || listed.present.fragments.length === 0) continue;
      const init = await readPart(folder, listed.init, signal);
      if (init === null) continue;
      this.#described.add(read.manifest);
      const reading = await reader.read(init, STAND_IN, { answer: 'report', anchors }, signal);
      const under = renditions.filter((other) => other.read?.manifest === read.manifest);
      const isIntact = under.every(({ map, deviations }) => map !== null && deviations.length === 0);
      readings.set(read.manifest, isIntact ? asBound(reading, read.binding) : reading);
      onRead();
    }
    return readings;
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
function chosenParts({ listed, read, map }: RenditionReading, depth: 'sample' | 'full'): MediaPart[] {
  const { fragments } = listed.present;
  const isSound = (index: number) => positionIn(map, read?.fragments[index]?.found) !== undefined;
  const sound = fragments.filter((_part, index) => isSound(index));
  const faulty = fragments.filter((_part, index) => !isSound(index));
  if (depth === 'full' || map === null) return [...sound, ...faulty];
  const sampledFaults = faulty.slice(0, MAX_SAMPLED_FAULTS);
  return [...sampleOf(sound, MAX_SAMPLED_FRAGMENTS - sampledFaults.length), ...sampledFaults];
}
