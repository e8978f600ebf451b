import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import { refuseCostlyChain } from '#provenance/chain-limits.ts';
import type { FragmentReader, FragmentReading } from '#provenance/official-reader.ts';
import type { MediaPart } from './media-part.ts';
import { MAX_RENDITIONS, refuseBeyond } from './playlists/limits.ts';
import type { PublicationFolder } from './publication-folder.ts';
import type { ReadInit } from './verification/choices.ts';
import { type Entry, type ListedRendition, readListedPublication } from './verification/listed-renditions.ts';
import { MAX_SAMPLED_FRAGMENTS, type OfficialReading, OfficialReadings } from './verification/official-readings.ts';
import { findRedirected } from './verification/playlist-findings.ts';
import type { UnboundMedia } from './verification/unbound-media.ts';
import { type VerifiedListing, verifyListed } from './verification/verify-listed.ts';
import {
  MAX_STORES_BYTES,
  PartsVerification,
  type ReadManifest,
  type ReadRendition,
} from './verification/verify-parts.ts';
import type { RenditionReading } from './verification/verify-renditions.ts';
import { mapOf } from './verification/verify-sequence.ts';

export type { PresentationDifference } from './presentation/compare-presentation.ts';
export { PRESENTATION_LABEL } from './presentation/presentation.ts';
export type { NamingText } from './presentation/verify-presentation.ts';
export type { OfficialReading } from './verification/official-readings.ts';
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
  const sampleSize = context.depth === 'full' ? Number.POSITIVE_INFINITY : MAX_SAMPLED_FRAGMENTS;
  const official = new OfficialReadings(manifests, { ...context, folder, sampleSize, onRead: advance });
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
