import type { PublicationDeviation, PublicationVerification, Verification } from '#contract/verification.ts';
import { withIdentities } from '#provenance/describe-identities.ts';
import { cut, describeReport, type ReportDescription } from '#provenance/describe-report.ts';
import type { AssetReading } from '#provenance/official-reader.ts';
import { explanationOf } from '#provenance/status-codes.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';
import {
  failuresIn,
  MATCH_CODES,
  type ManifestReport,
  problemsIn,
  VALID_ASSET,
} from '#provenance/validation-report.ts';
import { describePart, partKey } from '#publications/media-part.ts';
import {
  type Deviation,
  type FoundInPlaylist,
  isOfPlaylists,
  type NamingText,
  type OfficialReading,
  PRESENTATION_LABEL,
  type PresentationDifference,
  type UnboundMedia,
  type VerifiedPublication,
} from '#publications/verify-publication.ts';
import type { LeftOut } from './left-out.ts';
import type { ReportKind } from './report.ts';
import { withRevocation } from './revocation.ts';
import { summarize, TEXT_CODE } from './summarize.ts';

/** The verification of an input without a manifest. */
export const NO_MANIFEST: Verification = {
  state: 'none',
  summary: summarize({ state: 'none', codes: [], manifests: [] }),
  codes: [],
  manifests: [],
};

/** Describes what the official reader says of a file. */
export function describeReading(
  reading: AssetReading,
  manifestFrom: 'embedded' | 'sidecar',
  kind: ReportKind,
): Verification {
  if (reading === 'none') return NO_MANIFEST;
  const { state, ...rest } = describeReported(reading, kind);
  return { state, summary: summarize({ state, ...rest }), manifest_from: manifestFrom, ...rest };
}

/** Describes a report; or a manifest store that is there, and cannot be read. */
export function describeReported(reading: Exclude<AssetReading, 'none'>, kind: ReportKind): ReportDescription {
  if (!('problem' in reading)) return describeReport(reading, kind);
  const explanation = `${explanationOf('general.error')} The cause: ${reading.problem}`;
  return {
    state: 'invalid',
    codes: [{ code: 'general.error', kind: 'failure', explanation, count: 1 }],
    manifests: [],
  };
}

/**
 * Names the trust list of a trusted verification: that of the signer of the first of its manifest stores. The readers
 * know one bundle of anchors: a signer who has that of a time-stamp authority only is on no list. If the bytes of no
 * store are known here, no list is named.
 */
export function withTrustList(
  verification: Verification,
  stores: readonly Uint8Array[],
  lists: TrustLists,
): Verification {
  const [first, ...others] = stores;
  if (verification.state !== 'trusted' || first === undefined) return verification;
  const list = others.every((store) => lists.listOfSigner(store) !== null) ? lists.listOfSigner(first) : null;
  return list === null ? { ...verification, state: 'valid' } : { ...verification, trust_list: list };
}

/** What is found beside the reading of an asset. */
interface FurtherFindings {
  readonly leftOut: LeftOut | null;
  /** Its manifest stores, where their bytes are known. */
  readonly stores: readonly Uint8Array[];
  /** A report on the identity assertions of each manifest; null for one that has none. */
  readonly identities: readonly (ManifestReport | null)[];
}

/** Adds to a description what is found beside the reading that it is of. Its summary changes with an accepted manifest only. */
export function withFindings(
  verification: Verification,
  { leftOut, stores, identities }: FurtherFindings,
  lists: TrustLists,
): Verification {
  const listed = withTrustList(withLeftOut(verification, leftOut), stores, lists);
  const described = withPublishers(withRevocation(listed, stores, lists), identities, lists);
  return isAccepted(verification) ? { ...described, summary: summarize(described) } : described;
}

function isAccepted({ state }: Verification): boolean {
  return state === 'valid' || state === 'trusted';
}

/** Adds what the reader says of identity assertions, to a verdict that nothing else changes. */
function withPublishers(
  verification: Verification,
  identities: readonly (ManifestReport | null)[],
  { data: { allowed } }: TrustLists,
): Verification {
  if (identities.every((report) => report === null)) return verification;
  return withIdentities(verification, identities, allowed.length === 1 ? allowed[0]?.name : undefined);
}

/**
 * Adds what is said of a manifest that is accepted and leaves out more of its media than itself, or files that its file names, of
 * which the readers say nothing. A failure makes it invalid: nobody signed what it leaves out.
 */
export function withLeftOut(verification: Verification, found: LeftOut | null): Verification {
  const { codes } = verification;
  if (found === null || !isAccepted(verification)) return verification;
  const isFailure = found.kind === 'failure';
  if (!isFailure && codes.some(({ code }) => code === found.code)) return verification;
  const added = { explanation: explanationOf(found.code) ?? found.code, ...found, count: 1 };
  const isOther = isFailure && found.code !== TEXT_CODE;
  const others = isOther ? codes.filter(({ code }) => !MATCH_CODES.includes(code)) : codes;
  return { ...verification, ...(isFailure && { state: 'invalid' }), codes: [added, ...others] };
}

/** Deviations that a report lists, by its kind; more are counted. */
const MAX_LISTED: Readonly<Record<ReportKind, number>> = { summary: 25, detailed: 500, full: 1_000_000 };
/** Characters of a name, and codes of a part, that a report has. */
const MAX_NAME_CHARACTERS = 200;
const MAX_CODES = 5;

/** Playlists, and unknown names in playlists, that a report names in its own lists. */
const MAX_NAMED = 10;

/** A description, and whether nothing in it makes the publication invalid. */
type PublicationDescription = PublicationVerification & { readonly isAsSigned: boolean };

/** Describes how a publication differs from what was signed, part by part; the list is bounded by the kind of report. */
export function describePublication(verified: VerifiedPublication, kind: ReportKind): PublicationDescription {
  const { renditions, official, readAlone, presentation } = verified;
  const faults = faultsIn(verified);
  const all = deviationsOf(verified, faults);
  const found = all.map(({ deviation }) => deviation);
  const { state } = presentation;
  // A signed presentation says how its playlists play together, and in which order.
  const areUnsigned = state === 'not_signed' || state === 'equivalent';
  const alone = verified.entries.filter(({ isOneRendition }) => isOneRendition).map(({ path }) => path);
  const unknown = verified.findings.filter((finding) => finding.kind === 'unknown').map(describeUnknown);
  const deviations: Record<string, number> = {};
  for (const { kind: name, count } of found) deviations[name] = (deviations[name] ?? 0) + count;
  const faulty = new Set(faults.map(({ part }) => partKey(part)));
  const intact = renditions.flatMap((rendition) => [...rendition.intact]).filter((key) => !faulty.has(key)).length;
  const unnamed = found.filter(({ part, file }) => part === 'fragment' && file === undefined);
  const namedCount =
    renditions.reduce((sum, { listed }) => sum + namedIn(listed), 0) +
    verified.unbound.reduce((sum, { fragments }) => sum + fragments.length, 0);
  const first = found.slice(0, MAX_LISTED[kind]);
  return {
    isAsSigned: all.every(({ isOfPlaylists }) => state === 'as_signed' && isOfPlaylists),
    presentation: state,
    entries: verified.entries.slice(0, MAX_NAMED).map(({ path }) => named(path)),
    ...(presentation.absent.length > 0 && { playlists_absent: presentation.absent.slice(0, MAX_NAMED).map(named) }),
    ...(areUnsigned &&
      verified.unordered.length > 0 && { order_unknown: verified.unordered.slice(0, MAX_NAMED).map(named) }),
    ...(areUnsigned && verified.untimed > 0 && { times_unknown: verified.untimed }),
    ...(areUnsigned && verified.unoffered > 0 && { renditions_not_offered: verified.unoffered }),
    ...(areUnsigned && verified.manifests.length > 1 && { manifests: verified.manifests.length }),
    ...(areUnsigned && alone.length > 0 && { rendition_alone: alone.slice(0, MAX_NAMED).map(named) }),
    ...(unknown.length > 0 && { unknown_names: unknown.slice(0, MAX_NAMED) }),
    renditions: renditions.length,
    fragments: namedCount + unnamed.reduce((sum, { count }) => sum + count, 0),
    intact: verified.renditions.some(({ map }) => map === null) ? intact + officiallyIntact(verified) : intact,
    read_officially: official.length,
    ...(readAlone.size > 0 && { manifests_read_alone: readAlone.size }),
    deviations,
    first,
    ...(found.length > first.length && { omitted: found.length - first.length }),
  };
}

function namedIn({ orders }: VerifiedPublication['renditions'][number]['listed']): number {
  return new Set(orders.flatMap(({ fragments }) => fragments.map(({ part }) => partKey(part)))).size;
}

/** Counts the fragments that only the official reader can verify, and finds in order. */
function officiallyIntact({ renditions, official }: VerifiedPublication): number {
  return official.filter((read) => renditions[read.rendition]?.map === null && !isFaulty(read)).length;
}

/** Returns what is to be said of the presentation in the terms of status codes. */
export function presentationCodes({ presentation }: VerifiedPublication): Verification['codes'] {
  const { state, problems } = presentation;
  const told = problems.length > 0 ? ` (${problems.join('; ')})` : '';
  if (state === 'changed') {
    const explanation = `The playlists, or the files that they name, are not the signed ones${told}.`;
    return [{ code: `${PRESENTATION_LABEL}.mismatch`, kind: 'failure', explanation, count: 1 }];
  }
  if (problems.length === 0) return [];
  const explanation = `The playlists are signed in a way that is not known here${told}.`;
  return [{ code: `${PRESENTATION_LABEL}.unknown`, kind: 'informational', explanation, count: 1 }];
}

/** A deviation; `isOfPlaylists` where signed playlists may say it themselves. */
interface FoundDeviation {
  readonly deviation: PublicationDeviation;
  readonly isOfPlaylists: boolean;
}

/** Returns all deviations in the order of the programme, those that only the official reader finds included. */
function deviationsOf(
  { renditions, missingRenditions, unbound, presentation, findings }: VerifiedPublication,
  faults: readonly OfficialReading[],
): FoundDeviation[] {
  const nameOf = (index: number): string =>
    named(describePart(renditions[index]?.listed.init ?? { path: '', range: null }));
  const readings = Map.groupBy(faults, ({ rendition }) => rendition);
  const found = renditions.flatMap((rendition, index): FoundDeviation[] => {
    const { deviations } = rendition;
    const known = new Set(deviations.flatMap(({ file }) => (file === null ? [] : [partKey(file)])));
    const own = deviations.map((deviation) => ({
      deviation: describeDeviation(deviation, index, nameOf),
      isOfPlaylists: isOfPlaylists(deviation),
    }));
    const others = (readings.get(index) ?? []).filter(({ part }) => !known.has(partKey(part)));
    if (others.length === 0) return own;
    const positions = positionsIn(rendition);
    const further = others.map((read) => describeFault(read, nameOf(index), positions.get(partKey(read.part))));
    return [...own, ...further.map((deviation) => ({ deviation, isOfPlaylists: false }))];
  });
  const missing: PublicationDeviation = { kind: 'missing', part: 'rendition', count: missingRenditions };
  const ofPlaylists: PublicationDeviation[] = [
    ...unbound.map(describeUnbound),
    // Of unsigned playlists nothing is said of text.
    ...(presentation.state === 'as_signed' ? describeNamingTexts(presentation.namingTexts) : []),
    ...(missingRenditions > 0 ? [missing] : []),
    ...findings.filter(({ isOfFolder }) => isOfFolder !== true).flatMap(describeFinding),
  ];
  const ofFolder = findings.filter(({ isOfFolder }) => isOfFolder === true).flatMap(describeFinding);
  return [
    ...found,
    ...ofPlaylists.map((deviation) => ({ deviation, isOfPlaylists: true })),
    ...ofFolder.map((deviation) => ({ deviation, isOfPlaylists: false })),
    ...presentation.differences.map((each) => ({ deviation: describeDifference(each), isOfPlaylists: false })),
  ].sort((first, second) => (first.deviation.time_seconds ?? 0) - (second.deviation.time_seconds ?? 0));
}

function describeFinding({ kind, playlist, line, startSeconds, problem }: FoundInPlaylist): PublicationDeviation[] {
  if (kind === 'unknown') return [];
  const time = startSeconds === undefined ? {} : { time_seconds: toMilliseconds(startSeconds) };
  return [{ kind, part: 'playlist', count: 1, file: named(playlist), line, ...time, problem: named(problem) }];
}

function describeUnknown({ playlist, line, problem }: FoundInPlaylist) {
  return { file: named(playlist), line, name: named(problem) };
}

function describeDeviation(
  { kind, part, count, file, playlist, index, signedIndex, startSeconds, origin }: Deviation,
  rendition: number,
  nameOf: (index: number) => string,
): PublicationDeviation {
  return {
    kind,
    part,
    count,
    ...(file !== null && { file: named(describePart(file)) }),
    rendition: nameOf(rendition),
    ...(playlist !== null && { playlist: named(playlist) }),
    ...(index !== null && { index }),
    ...(signedIndex !== null && { signed_index: signedIndex }),
    ...(startSeconds !== null && { time_seconds: toMilliseconds(startSeconds) }),
    ...(origin !== null && {
      signed_as: { rendition: nameOf(origin.rendition), ...(origin.index !== null && { index: origin.index }) },
    }),
  };
}

function describeDifference({ kind, part, playlist }: PresentationDifference): PublicationDeviation {
  return { kind, part, count: 1, ...(playlist !== null && { file: named(playlist) }) };
}

function describeUnbound({ playlist, fragments }: UnboundMedia): PublicationDeviation {
  const [first] = fragments;
  const startSeconds = first?.startSeconds ?? null;
  return {
    kind: 'unsigned',
    part: 'fragment',
    count: fragments.length,
    ...(first !== undefined && { file: named(describePart(first.part)) }),
    playlist: named(playlist),
    ...(startSeconds !== null && { time_seconds: toMilliseconds(startSeconds) }),
  };
}

/** Describes all files that texts name by one deviation: there may be thousands of texts. */
function describeNamingTexts(texts: readonly NamingText[]): PublicationDeviation[] {
  const [first] = texts;
  if (first === undefined) return [];
  const count = texts.reduce((sum, { addresses }) => sum + addresses.length, 0);
  const shown = { file: named(first.addresses[0] ?? ''), playlist: named(first.path) };
  return [{ kind: 'unsigned', part: 'files', count, ...shown }];
}

/**
 * Returns what the official reader finds wrong with fragments themselves: it calls every fragment invalid whose init
 * segment is not as it was signed.
 */
function faultsIn({ renditions, official }: VerifiedPublication): OfficialReading[] {
  const hasOtherInit = renditions.map(({ deviations }) => deviations.some(({ part }) => part === 'init'));
  return official.filter((read) => isFaulty(read) && hasOtherInit[read.rendition] !== true);
}

/** The failures of the binding of a fragment; others are about the manifest as a whole. */
const BINDING_FAILED = /^assertion\.bmffHash\./;

/** Returns true where the official reader finds that a fragment is not what the manifest binds, or cannot read it. */
export function isFaulty({ reading }: OfficialReading): boolean {
  if ('problem' in reading) return true;
  const failures = failuresIn(reading.validation_results?.activeManifest, VALID_ASSET);
  if (failures.some((code) => BINDING_FAILED.test(code))) return true;
  // A binding that was not checked is no failure to the reader.
  return failures.length === 0 && problemsIn(reading.validation_results, VALID_ASSET).length > 0;
}

/** The place at which a fragment is played. */
interface Position {
  readonly playlist: string;
  readonly index: number;
  readonly startSeconds: number | null;
}

function positionsIn({ listed }: VerifiedPublication['renditions'][number]): Map<string, Position> {
  const [order] = listed.orders;
  const fragments = order?.fragments ?? [];
  return new Map(
    fragments.map(({ part, startSeconds }, index) => [
      partKey(part),
      { playlist: order?.playlist ?? '', index, startSeconds },
    ]),
  );
}

function describeFault(
  { part, reading }: OfficialReading,
  rendition: string,
  position: Position | undefined,
): PublicationDeviation {
  const codes =
    'problem' in reading ? [reading.problem] : failuresIn(reading.validation_results?.activeManifest, VALID_ASSET);
  return {
    kind: 'problem' in reading ? 'unreadable' : 'altered',
    part: 'fragment',
    count: 1,
    file: named(describePart(part)),
    rendition,
    ...(position !== undefined && { playlist: named(position.playlist), index: position.index }),
    ...(position !== undefined &&
      position.startSeconds !== null && { time_seconds: toMilliseconds(position.startSeconds) }),
    codes: codes.slice(0, MAX_CODES).map(named),
  };
}

function named(name: string): string {
  return cut(name, MAX_NAME_CHARACTERS);
}

function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
