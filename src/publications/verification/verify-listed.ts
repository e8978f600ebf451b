import { createHash } from 'node:crypto';
import { partKey, singleFileOf } from '../media-part.ts';
import {
  manifestsByEntry,
  type VerifiedPresentation,
  verifyPresentation,
} from '../presentation/verify-presentation.ts';
import type { PublicationFolder } from '../publication-folder.ts';
import { findAdjacentFiles } from './adjacent-files.ts';
import { type Choice, findJoinedPublications, findSilentChoices, type ReadInit } from './choices.ts';
import type { ListedPublication, ListedRendition } from './listed-renditions.ts';
import type { TimesOf } from './media-times.ts';
import type { FoundInPlaylist } from './playlist-findings.ts';
import type { StoredMap } from './stored-binding.ts';
import type { PartsVerification, ReadManifest } from './verify-parts.ts';
import { type VerifiedParts, verifyRanges } from './verify-ranges.ts';
import {
  isOfPlaylists,
  type RenditionReading,
  timesIn,
  type VerifiedRendition,
  verifyRenditions,
} from './verify-renditions.ts';
import { verifyTimes } from './verify-times.ts';

/** The media that playlists play, compared with the signed ones. */
export interface VerifiedListing {
  readonly renditions: readonly VerifiedRendition[];
  /** Signed renditions that no playlist has. */
  readonly missingRenditions: number;
  /** Signed renditions that chosen entries do not offer. */
  readonly unoffered: number;
  /** The one file that all parts are byte ranges of, where its manifest binds it as a whole; null for any other publication. */
  readonly wholeFile: string | null;
  /** The playlists, compared with those that were signed. */
  readonly presentation: VerifiedPresentation;
  /** Lines of the playlists that players may read differently. */
  readonly findings: readonly FoundInPlaylist[];
  /** Playlists with media under several init segments, of which nothing says in which order they were signed. */
  readonly unordered: readonly string[];
  /** Fragments whose own times are not known, so that what playlists say of them was not compared. */
  readonly untimed: number;
}

/** The readings of parts that a publication is verified by. */
interface VerifiedBy {
  /** The verification that its parts were read by. */
  readonly verification: PartsVerification;
  /** True where entries were chosen; else all playlists of the folder are verified. */
  readonly areChosen: boolean;
  /** Init segments that other entries name. */
  readonly others: readonly ReadInit[];
}

/**
 * Verifies what playlists play by what was read of the renditions that they list. Reads no media but the boxes of a whole file, and
 * files directly beside those that are listed.
 */
export async function verifyListed(
  folder: PublicationFolder,
  publication: ListedPublication,
  readings: readonly RenditionReading[],
  { verification, areChosen, others }: VerifiedBy,
  signal: AbortSignal,
): Promise<VerifiedListing> {
  const { manifests } = verification;
  const { unbound, listings, choices } = publication;
  const adjacent = await findAdjacentFiles(publication.playlists, readings, verification);
  const wholeFile = unbound.length === 0 ? fileBoundAsWhole(publication.renditions, manifests) : null;
  const { renditions, inits, timesOf } =
    wholeFile === null
      ? verifyBoundParts(manifests, readings, choices)
      : await verifyRanges(folder, wholeFile, publication.renditions, signal);
  const times = verifyTimes(listings, choices, timesOf);
  const manifestsOf = manifestsByEntry(renditions, manifests);
  const arePartsIntact = renditions.every(({ deviations }) => deviations.every(isOfPlaylists));
  const presented = { ...publication, folder, areChosen, arePartsIntact, manifestsOf };
  const presentation = await verifyPresentation(presented, signal);
  const missing = countMissing(manifests, renditions);
  // A signed playlist that is not published offers what no other one does.
  const isPartly = areChosen || (presentation.state === 'as_signed' && presentation.absent.length > 0);
  return {
    renditions,
    missingRenditions: isPartly ? 0 : missing,
    unoffered: areChosen ? missing : 0,
    wholeFile,
    presentation,
    findings: [
      ...publication.findings,
      ...adjacent,
      ...times.findings,
      ...findSilentChoices(choices, [...others, ...inits]),
      ...findJoinedPublications(listings, choices, renditions),
    ],
    unordered: times.unordered,
    untimed: untimedIn(renditions, timesOf),
  };
}

/** Verifies renditions by the trees of their manifests; none where there is no manifest. */
function verifyBoundParts(
  manifests: readonly ReadManifest[],
  readings: readonly RenditionReading[],
  choices: readonly Choice[],
): VerifiedParts {
  const renditions = manifests.length === 0 ? [] : verifyRenditions(readings, choices);
  return { renditions, inits: renditions, timesOf: timesIn(renditions) };
}

function untimedIn(renditions: readonly VerifiedRendition[], timesOf: TimesOf): number {
  const untimed = renditions.map(({ listed: { init, present }, intact }) => {
    return present.fragments.filter((part) => intact.has(partKey(part)) && timesOf(init, part) === null).length;
  });
  return untimed.reduce((sum, count) => sum + count, 0);
}

/** Returns the one file that all parts are byte ranges of, where manifests bind no parts: they bind it as a whole, or nothing. */
function fileBoundAsWhole(listed: readonly ListedRendition[], manifests: readonly ReadManifest[]): string | null {
  const present = listed.flatMap(({ isInitMissing, present: { init, fragments } }) => {
    const [first] = isInitMissing ? fragments : [init];
    return first === undefined ? [] : { init: first, fragments };
  });
  const isBoundByParts = manifests.some(({ binding }) => binding !== null);
  return manifests.length === 0 || isBoundByParts ? null : singleFileOf(present);
}

/**
 * Counts the maps that nothing was verified by. Such a map belongs to a rendition that is there without its manifest, or
 * to none. Maps are compared by what they bind: copies of a manifest may differ in bytes that nobody signed.
 */
function countMissing(manifests: readonly ReadManifest[], renditions: readonly VerifiedRendition[]): number {
  const used = new Set(renditions.flatMap(({ map }) => (map === null ? [] : [keyOf(map)])));
  const signed = new Set(manifests.flatMap(({ binding }) => binding?.maps ?? []).map(keyOf));
  const unused = [...signed].filter((key) => !used.has(key)).length;
  return Math.max(unused - renditions.filter(({ map }) => map === null).length, 0);
}

/** Names what a map binds: init segments of two publications may be the same, and their fragments are not. */
function keyOf({ uniqueId, localId, count, initHash, hashes }: StoredMap): string {
  const digest = hashes.reduce((hash, each) => hash.update(each), createHash('sha256').update(initHash)).digest('hex');
  return `${uniqueId} ${localId} ${count} ${digest}`;
}
