import type { SourceFolder } from '#bytes/source-folder.ts';
import type { Verification } from '#contract/verification.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { AppError } from '#errors/app-error.ts';
import { stateOf } from '#provenance/describe-report.ts';
import { mostIdentitiesIn, readIdentities } from '#provenance/publisher-report.ts';
import type { ReadableAsset } from '#provenance/reader-threads.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';
import type { Finding, ManifestReport } from '#provenance/validation-report.ts';
import { MAX_READ_PART_BYTES, readPart } from '#publications/media-part.ts';
import { publicationFolder } from '#publications/publication-folder.ts';
import { type VerifiedPublication, verifyPublication } from '#publications/verify-publication.ts';
import type { InputContext, InputWork, OperationServices, VerificationOutcome } from '../operation.ts';
import {
  describePublication,
  describeReading,
  describeReported,
  isFaulty,
  NO_MANIFEST,
  presentationCodes,
  withFindings,
  withLeftOut,
} from './describe-verdict.ts';
import { bindingOf, findExtra, findInHeaders, type LeftOut } from './left-out.ts';
import { answerKind, forensicsOf, type ReportKind, writeReport } from './report.ts';
import { summarize, summarizeDeviations } from './summarize.ts';
import { readEmbedded } from './verify-file.ts';

/** Verifies the publication in a folder, part by part. Throws an AppError where it holds none that can be read. */
export async function verifyFolder(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<VerificationOutcome> {
  const folder = publicationFolder(await services.inputs.openFolder(work.input, work.inputIndex, context));
  context.reached('resolved');
  const params = (work.params ?? {}) as VerifyParams;
  const { depth = 'sample', entries = null, presentation = 'as_signed' } = params;
  const lists = services.trust.current;
  const task = { ...context, reader: services.fragments, depth, anchors: lists.pem, entries };
  const verified = await verifyPublication(folder, task);
  const accepted = presentation === 'equivalent' ? acceptPlaylists(verified) : verified;
  const verdict = await describerOf(accepted, folder, lists, context);
  const isSigned = verified.manifests.length > 0;
  const forensics = isSigned
    ? await forensicsOf(() => firstFragment(verified, folder, context), params, context, services, lists.pem)
    : () => ({});
  const stores = verified.manifests.map(({ store }) => store);
  const findings = { stores, leftOut: leftOutOf(verified), identities: await identitiesOf(stores, lists, context) };
  const describe: Describer = (kind) => ({
    ...withFindings(verdict(kind), findings, lists),
    ...forensics(kind),
  });
  context.reached('verified');
  const outputPath = await writeReport(folder.name, () => describe('full'), work, context, services);
  return { ...(outputPath !== null && { outputPath }), verification: describe(answerKind(params)), warnings: [] };
}

/** Returns the worst of what to say of manifests that leave out more than themselves; null where none does. */
function leftOutOf(verified: VerifiedPublication): LeftOut | null {
  const found = verified.manifests.flatMap(({ store }, number) => {
    const report = reportOf(verified, number);
    const inHeaders = 'problem' in report ? null : findInHeaders(store, report);
    return inHeaders ?? findExtra(bindingOf(store), null) ?? [];
  });
  return found.find(({ kind }) => kind === 'failure') ?? found[0] ?? null;
}

/** Returns a report on the identity assertions of each manifest; null for one that has none. */
async function identitiesOf(
  stores: readonly Uint8Array[],
  lists: TrustLists,
  { signal }: InputContext,
): Promise<(ManifestReport | null)[]> {
  const reports: (ManifestReport | null)[] = [];
  for (const store of stores) reports.push(await readIdentities(store, mostIdentitiesIn(store), lists, signal));
  return reports;
}

const NO_FRAGMENT_READ = { problem: 'The official reader has read no fragment, and gives no crJSON without one.' };

/** Returns the first fragment that the official reader has read, with its init segment; or why there is none. */
async function firstFragment(
  { renditions, official: [first] }: VerifiedPublication,
  folder: SourceFolder,
  { signal }: InputContext,
): Promise<ReadableAsset | { problem: string }> {
  const init = first === undefined ? undefined : renditions[first.rendition]?.listed.init;
  if (first === undefined || init === undefined) return NO_FRAGMENT_READ;
  const [initBytes, fragment] = [await readPart(folder, init, signal), await readPart(folder, first.part, signal)];
  return initBytes === null || fragment === null ? NO_FRAGMENT_READ : { init: initBytes, fragment };
}

type Describer = (kind: ReportKind) => Verification;

async function describerOf(
  verified: VerifiedPublication,
  folder: SourceFolder,
  lists: TrustLists,
  context: InputContext,
): Promise<Describer> {
  if (verified.manifests.length === 0) return () => NO_MANIFEST;
  if (verified.wholeFile === null) {
    refuseUnread(verified, folder.name);
    return (kind) => describeVerified(verified, kind);
  }
  const source = await folder.open(verified.wholeFile, context.signal);
  context.scratch.adopt(source);
  const { reading, leftOut } = await readEmbedded(source, lists, context);
  return (kind) => describeRanges(verified, withLeftOut(describeReading(reading, 'embedded', kind), leftOut), kind);
}

/** Describes a file that a publication is byte ranges of, with what playlists have players show of it. */
function describeRanges(verified: VerifiedPublication, ofFile: Verification, kind: ReportKind): Verification {
  const { isAsSigned, ...publication } = describePublication(verified, kind);
  if (ofFile.state === 'none' || ofFile.state === 'invalid') return { ...ofFile, summary: summarize(ofFile) };
  const described = { ...ofFile, publication };
  if (isAsSigned) return { ...described, summary: summarize(described) };
  return { ...described, state: 'invalid', summary: summarizeDeviations(publication) };
}

/**
 * Refuses a publication in which nothing is found altered, where the official reader could not be given what only it
 * can verify: a fragment under each manifest, and every fragment of a rendition that our own engine cannot verify. Throws
 * `FRAGMENTS_TOO_LARGE`.
 */
function refuseUnread(
  { manifests, renditions, official, readAlone, missingRenditions, unbound }: VerifiedPublication,
  name: string,
): void {
  const hasDeviations = renditions.some(({ deviations }) => deviations.length > 0);
  if (hasDeviations || missingRenditions > 0 || unbound.length > 0 || official.some(isFaulty)) return;
  const isUnread = manifests.some((_manifest, index) => {
    const under = renditions.filter(({ read }) => read?.manifest === index);
    const hasFragments = under.some(({ listed }) => listed.present.fragments.length > 0);
    return (
      hasFragments &&
      !readAlone.has(index) &&
      !official.some(({ isFull, rendition }) => isFull && renditions[rendition]?.read?.manifest === index)
    );
  });
  const isPartlyRead = renditions.some(({ listed, read, map }, index) => {
    if (map !== null || read?.hasManifest !== true) return false;
    return official.filter(({ rendition }) => rendition === index).length < listed.present.fragments.length;
  });
  if (isUnread || isPartlyRead) throw new AppError('FRAGMENTS_TOO_LARGE', { name, limit: MAX_READ_PART_BYTES });
}

function describeVerified(verified: VerifiedPublication, kind: ReportKind): Verification {
  const signers = signersOf(verified);
  const { isAsSigned, ...counted } = describePublication(verified, kind);
  const publication = { ...counted, ...(signers.length > 1 && { signers }) };
  const { state: ofManifests, codes, ...described } = describeReported(worstReport(verified), kind);
  const reported = { ...described, codes: [...presentationCodes(verified), ...codes] };
  const state = isAsSigned ? ofManifests : 'invalid';
  const summary = isAsSigned ? summarize({ state, publication, ...reported }) : summarizeDeviations(publication);
  return { state, summary, manifest_from: 'embedded', publication, ...reported };
}

/** Returns a publication whose playlists may differ from the signed ones. */
function acceptPlaylists({ presentation, ...verified }: VerifiedPublication): VerifiedPublication {
  const isAccepted = presentation.state === 'changed';
  return {
    ...verified,
    presentation: isAccepted ? { ...presentation, state: 'equivalent', differences: [] } : presentation,
  };
}

/** Signers that a report names. */
const MAX_SIGNERS = 10;

/** Returns the different signers of the manifests of a publication, as far as these can be read. */
function signersOf(verified: VerifiedPublication): string[] {
  const signers = verified.manifests.flatMap((_manifest, number) => {
    const { manifests } = describeReported(reportOf(verified, number), 'summary');
    const { name, organization } = manifests[0]?.signer ?? {};
    if (organization === undefined || name === undefined) return organization ?? name ?? [];
    return `${organization} (${name})`;
  });
  return [...new Set(signers)].slice(0, MAX_SIGNERS);
}

const NOT_READ = {
  problem: 'none of its fragments is there with at most 64 MiB, and an init segment that is no larger',
} as const;

/**
 * Returns the report on a manifest by the fragment that was read in full, with the failures of the binding that were
 * found in others.
 */
function reportOf(
  { renditions, official, readAlone }: VerifiedPublication,
  number: number,
): ManifestReport | { problem: string } {
  const own = official.filter(({ rendition }) => renditions[rendition]?.read?.manifest === number);
  const first = own.find(({ isFull }) => isFull);
  if (first === undefined) return readAlone.get(number) ?? NOT_READ;
  if ('problem' in first.reading) return first.reading;
  const results = first.reading.validation_results;
  if (results?.activeManifest === undefined) return first.reading;
  const further = own.filter((read) => read !== first && isFaulty(read)).flatMap(failuresOf);
  const failure = [...results.activeManifest.failure, ...further];
  const activeManifest = { ...results.activeManifest, failure };
  return { ...first.reading, validation_results: { ...results, activeManifest } };
}

function failuresOf({ reading }: VerifiedPublication['official'][number]): Finding[] {
  const failures = 'problem' in reading ? [] : (reading.validation_results?.activeManifest?.failure ?? []);
  return failures.filter(({ code }) => code.startsWith('assertion.bmffHash.'));
}

const RANKED: readonly Verification['state'][] = ['invalid', 'valid', 'trusted'];

/** Returns the report with the worst verdict of those on all manifests, as a rule one: that of the first of equals. */
function worstReport(verified: VerifiedPublication): ManifestReport | { problem: string } {
  const reports = verified.manifests.map((_manifest, number) => reportOf(verified, number));
  const rankOf = (report: (typeof reports)[number]) =>
    RANKED.indexOf('problem' in report ? 'invalid' : stateOf(report));
  return reports.sort((first, second) => rankOf(first) - rankOf(second))[0] ?? NOT_READ;
}
