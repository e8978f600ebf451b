import type { AppError } from '#errors/app-error.ts';
import type { AssetReading } from '#provenance/official-reader.ts';
import { readInWasm } from '#provenance/reader-threads.ts';
import { type ManifestReport, problemsIn, VALID_ASSET } from '#provenance/validation-report.ts';
import { bindingOf, type FileWithManifest, findLeftOut, type LeftOut } from './left-out.ts';

// Judges a file by what the native reader says of it, what the newer reader says, and what no hash covers: for a verdict, and for an
// ingredient of what is signed.

/** A file that was read with its manifest. */
export interface ReadFile extends FileWithManifest {
  readonly path: string;
  /** The error that its container was refused with; null for pictures and documents, which the readers alone know. */
  readonly problem: AppError | null;
}

/** The reading that counts, and what it leaves out. */
interface Judgement {
  readonly reading: AssetReading;
  readonly leftOut: LeftOut | null;
  /** The error of a container in which nothing can be looked for here, and which readers accept, or miss media in; null for others. */
  readonly unread: AppError | null;
}

/** The problem of a file with an element of C2PA in which no reader, or not each the same, finds a manifest store. */
export const NO_STORE = 'a box, chunk or frame of C2PA is there without one manifest store that can be read';

/** The reader's words for a manifest that is there and cannot be read: they name a part of it. Others are about the container. */
const UNREADABLE_MANIFEST = /\b(claim|assertion|COSE|CBOR|JUMBF?|time stamp|C2PA box|manifest without)\b/i;

/** Returns the reading of a file, confirmed or refused where the native reader does not tell all, and what its manifest leaves out. */
export async function judgeReading(
  first: AssetReading,
  file: ReadFile,
  anchors: string | null,
  signal: AbortSignal,
): Promise<Judgement> {
  const { layout, store, isSidecar } = file;
  const isKnown = isSidecar || (layout !== null && store !== null && bindingOf(store, labelOf(first)) !== null);
  const reading = isKnown && !lacksMatch(first) ? first : await readTwice(first, file, anchors, signal);
  if (!isAccepted(reading)) return { reading, leftOut: null, unread: withoutMedia(file) };
  const leftOut = await findLeftOut({ ...file, report: reading }, signal);
  return { reading, leftOut, unread: unreadOf(file, reading.active_manifest) };
}

/** Returns the problem of a container: whoever puts something into one that only this service stumbles over must not hide media by that. */
function unreadOf({ problem, store, isSidecar }: ReadFile, label: string | undefined): AppError | null {
  // Of bytes, a sidecar says which ones it leaves out.
  const leavesOutBytes = isSidecar && store !== null && bindingOf(store, label)?.by !== 'boxes';
  return leavesOutBytes ? null : problem;
}

/**
 * Returns the problem of a movie in which there is no media: what its manifest binds lies in other files where it is an init segment, and
 * readers call that changed.
 */
function withoutMedia({ problem, isSidecar }: ReadFile): AppError | null {
  return !isSidecar && problem?.reason === 'BMFF_MEDIA_MISSING' ? problem : null;
}

function labelOf(reading: AssetReading): string | undefined {
  return reading === 'none' || 'problem' in reading ? undefined : reading.active_manifest;
}

/** Returns true where the reader refuses nothing. */
function isAccepted(reading: AssetReading): reading is ManifestReport {
  return reading !== 'none' && !('problem' in reading) && reading.validation_state !== 'Invalid';
}

/** Tells whether a reader refuses nothing and does not say either that the media match: the native one does not say it of an update. */
function lacksMatch(reading: AssetReading): boolean {
  return isAccepted(reading) && problemsIn(reading.validation_results, VALID_ASSET).length > 0;
}

/** Returns true where the reader finds a manifest, whether it can read it or not. */
export function showsManifest(reading: AssetReading): boolean {
  return reading !== 'none' && (!('problem' in reading) || UNREADABLE_MANIFEST.test(reading.problem));
}

/**
 * Has the newer reader confirm a reading that says nothing of the binding, or whose binding cannot be read here: it refuses a hash that
 * leaves out more than the manifest, and a C2PA box without one. Nothing is accepted that only the first reading accepts.
 */
async function readTwice(
  first: AssetReading,
  { path, mediaType, isSidecar }: ReadFile,
  anchors: string | null,
  signal: AbortSignal,
): Promise<AssetReading> {
  // The newer reader takes no manifest apart from its asset.
  if (isSidecar || (first !== 'none' && !isAccepted(first))) return first;
  const second = await readInWasm({ answer: 'report', asset: { path, mediaType }, anchors }, signal);
  if ('problem' in second) return first !== 'none' || UNREADABLE_MANIFEST.test(second.problem) ? second : first;
  if (first === 'none' || !isAccepted(second.report)) return second.report;
  return lacksMatch(first) ? withBinding(first, second.report) : first;
}

/** Codes about the binding of an accepted manifest. */
const OF_BINDING = /^assertion\.(?:\w+Hash\.match|dataHash\.additionalExclusionsPresent)$/;

/** Returns a reading with what another one says of the binding to the media. */
function withBinding(reading: ManifestReport, other: ManifestReport): ManifestReport {
  const { activeManifest: own, ...results } = reading.validation_results ?? {};
  const { activeManifest: added } = other.validation_results ?? {};
  if (own === undefined || added === undefined) return reading;
  const joined = (kind: 'success' | 'informational') => [
    ...own[kind],
    ...added[kind].filter(({ code }) => OF_BINDING.test(code)),
  ];
  const activeManifest = { ...own, success: joined('success'), informational: joined('informational') };
  return { ...reading, validation_results: { ...results, activeManifest } };
}
