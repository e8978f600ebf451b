import { type ByteSource, openedPathOf, readRange } from '#bytes/byte-source.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import { type ApiInputRef, path as nameablePath } from '#contract/request.ts';
import type { Verification } from '#contract/verification.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError, type Reason } from '#errors/catalogue.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { HEAD_SIZE_BYTES, type ReadableLayout } from '#formats/format-handler.ts';
import { formatUnknown, readVerifiableLayout, recogniseFormat } from '#formats/formats.ts';
import { linkWarnings } from '#formats/matroska-links.ts';
import { findPictureManifest, type PictureManifest } from '#formats/picture-manifest.ts';
import { unsupportedMediaType } from '#formats/unsupported-containers.ts';
import { stemOf } from '#outputs/output-path.ts';
import { MAX_STORE_BYTES, refuseCostlyChain } from '#provenance/chain-limits.ts';
import { mostIdentities } from '#provenance/describe-identities.ts';
import { readManifestStore } from '#provenance/manifest-store.ts';
import { type AssetReading, assetReadingOf } from '#provenance/official-reader.ts';
import { readIdentities } from '#provenance/publisher-report.ts';
import type { ReadableAsset } from '#provenance/reader-threads.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';
import type { ManifestReport } from '#provenance/validation-report.ts';
import { isS3Url } from '#s3/s3-address.ts';
import { elsewhereWarnings, remoteManifestWarnings } from '../describe-ingredient.ts';
import { readStore, storeRangesOf } from '../embedded-store.ts';
import { faultOf } from '../ingredients.ts';
import type { InputContext, InputWork, OperationServices, VerificationOutcome } from '../operation.ts';
import { describeReading, withFindings } from './describe-verdict.ts';
import { judgeReading, NO_STORE, showsManifest } from './judge-reading.ts';
import type { LeftOut } from './left-out.ts';
import { answerKind, forensicsOf, type ReportKind, writeReport } from './report.ts';

/** The reasons for which a verification has no crJSON. */
const UNSIGNED = 'There is no manifest.';
const IN_SIDECAR = 'The manifest lies in a sidecar, of which the reader gives no crJSON.';

/** Verifies one file with its embedded manifest or its sidecar. Throws an AppError where it cannot be verified. */
export async function verifyFile(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<VerificationOutcome> {
  const source = await services.inputs.openFile(work.input, work.inputIndex, context);
  try {
    const found = await findManifest(source, work, context, services);
    context.reached('resolved');
    const params = (work.params ?? {}) as VerifyParams;
    const lists = services.trust.current;
    const { reading, store, leftOut, crJsonAsset, warnings } = await readAsset(found, source, lists, context);
    const asset = crJsonAsset ?? { problem: found.sidecar === null ? UNSIGNED : IN_SIDECAR };
    const identities = await identitiesOf(reading, store ?? crJsonAsset, lists, context);
    const forensics = await forensicsOf(async () => asset, params, context, services, lists.pem);
    context.reached('verified');
    const manifestFrom = found.sidecar === null ? 'embedded' : 'sidecar';
    const stores = store === null ? [] : [store];
    const findings = { leftOut, stores, identities: [identities] };
    const describe = (asked: ReportKind): Verification => ({
      ...withFindings(describeReading(reading, manifestFrom, asked), findings, lists),
      ...(reading !== 'none' && forensics(asked)),
    });
    const outputPath = await writeReport(source.name, () => describe('full'), work, context, services);
    const verification = describe(answerKind(params));
    return { ...(outputPath !== null && { outputPath }), verification, warnings: [...found.warnings, ...warnings] };
  } finally {
    await source.close();
  }
}

/** Returns a report on the identity assertions of a file; null where it has none. */
async function identitiesOf(
  reading: AssetReading,
  found: Uint8Array | ReadableAsset | null,
  lists: TrustLists,
  { signal }: InputContext,
): Promise<ManifestReport | null> {
  if (found === null || reading === 'none' || 'problem' in reading) return null;
  return await readIdentities(found, mostIdentities(reading), lists, signal);
}

/** A file, and where its manifest is. */
interface FoundManifest {
  /** By its bytes; null where they tell nothing. */
  readonly mediaType: string | null;
  /** Null where the container is unknown here, or damaged: then the official reader alone decides. */
  readonly layout: ReadableLayout | null;
  /** The error that the container was refused with. */
  readonly problem: AppError | null;
  /** The contents of its sidecar, where it is verified with one. */
  readonly sidecar: Buffer | null;
  readonly warnings: readonly Warning[];
}

async function findManifest(
  source: ByteSource,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<FoundManifest> {
  const named = await namedSidecar(work, context, services);
  const identified = await identify(source, context.signal);
  if (named !== null) return { ...identified, sidecar: named };
  const isEmbedded = identified.layout !== null && identified.layout.elements.length > 0;
  const sidecar = isEmbedded ? null : await adjacentSidecar(work, context, services);
  return { ...identified, sidecar };
}

/** Reads the layout of a file. A container that is damaged, or unknown here, is left to the official reader. */
async function identify(source: ByteSource, signal: AbortSignal): Promise<Omit<FoundManifest, 'sidecar'>> {
  const format = await recogniseFormat(source, signal);
  if (format === undefined) {
    const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal);
    const problem = unsupportedMediaType(head) === null ? formatUnknown(source.name, head, 'verify') : null;
    return { mediaType: stillMediaType(head), layout: null, problem, warnings: await linkWarnings(source, signal) };
  }
  try {
    const layout = await readVerifiableLayout(format, source, signal);
    // Corrections of signing are not said of a file that is only read.
    const warnings = [...elsewhereWarnings(layout), ...(await remoteManifestWarnings({ source, layout }, signal))];
    return { mediaType: layout.mediaType, layout, problem: null, warnings };
  } catch (error) {
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    return { mediaType: format.mediaType, layout: null, problem: error, warnings: [] };
  }
}

/** A reading of a file by the official reader, and the file as it can be read again: null where there is nothing to read. */
interface AssetResult {
  readonly reading: AssetReading;
  /** Its manifest store, where its bytes are known. */
  readonly store: Uint8Array | null;
  readonly leftOut: LeftOut | null;
  readonly crJsonAsset: ReadableAsset | null;
  readonly warnings: readonly Warning[];
}

/** The reader's words for a file that names a manifest at a remote address only. It is never fetched. */
const REMOTE_MANIFEST = /must fetch remote manifests/i;
/** Has the official reader read the file. Throws where neither it nor this service can make anything of the container. */
async function readAsset(
  { layout, mediaType, problem, sidecar }: FoundManifest,
  source: ByteSource,
  lists: TrustLists,
  context: InputContext,
): Promise<AssetResult> {
  const { signal, scratch } = context;
  const hasNone = layout === null ? mediaType === null : layout.elements.length === 0;
  if (hasNone && sidecar === null) return withoutManifest(problem);
  if (sidecar === null && layout?.elements.some(({ content }) => content === null)) return unreadable(NO_STORE);
  const pinned = await pinnedCopyOf(source, scratch, signal);
  // A server may have given other bytes of it before: the copy is what the readers get.
  if (pinned !== source)
    return await readAsset({ ...(await identify(pinned, signal)), sidecar }, pinned, lists, context);
  const picture = layout === null && sidecar === null ? await findPictureManifest(pinned, mediaType, signal) : null;
  const store = sidecar ?? (await embeddedStore(pinned, layout ?? picture, signal));
  const otherwise = store === null ? null : refuseStore(source.name, store);
  if (otherwise !== null) return unreadable(otherwise);
  const asset = {
    path: openedPathOf(pinned),
    mediaType: mediaType ?? 'application/octet-stream',
    ...(sidecar !== null && { detachedStore: sidecar }),
  };
  const read = (anchors: string | null) => scratch.withHeartbeats(() => assetReadingOf(asset, anchors, signal));
  const first = store === null ? await readUnknownSigner(lists, read) : await read(lists.pem);
  // Readers may say of two manifests that there is none to be read.
  const isFound = layout !== null || sidecar !== null || (picture !== null && picture.manifest !== null);
  if (first === 'none' && isFound && sidecar === null) return unreadable(NO_STORE);
  const refused = problem?.reason === 'FORMAT_UNKNOWN' ? null : problem;
  const file = { ...asset, source: pinned, layout, picture, store, isSidecar: sidecar !== null, problem: refused };
  const { reading, leftOut, unread } = await scratch.withHeartbeats(() => judgeReading(first, file, lists.pem, signal));
  await pinned.checkUnchanged?.(signal);
  if (!isFound && !showsManifest(reading)) {
    // Only the reader knows other pictures and documents: they have no manifest where it finds none. Of a damaged container
    // it may miss one.
    const isRemote = reading !== 'none' && 'problem' in reading && REMOTE_MANIFEST.test(reading.problem);
    const isSearched = problem?.reason === 'FORMAT_UNKNOWN' && (reading === 'none' || isRemote);
    const warnings = isRemote ? [warning('REMOTE_MANIFEST_NOT_FETCHED', { title: source.name })] : [];
    return withoutManifest(isSearched ? null : problem, warnings);
  }
  const crJsonAsset = sidecar === null ? { path: asset.path, mediaType: asset.mediaType } : null;
  if (unread !== null) throw unread;
  return { reading, store, leftOut, crJsonAsset, warnings: [] };
}

/** Has the official reader read a file by its embedded manifest, as `verifyFile` does. */
export async function readEmbedded(source: ByteSource, lists: TrustLists, context: InputContext): Promise<AssetResult> {
  return await readAsset({ ...(await identify(source, context.signal)), sidecar: null }, source, lists, context);
}

/** The result for a file that has a box, chunk or frame of C2PA, and no manifest that every reader finds in it. */
function unreadable(problem: string): AssetResult {
  return { reading: { problem }, store: null, leftOut: null, crJsonAsset: null, warnings: [] };
}

/**
 * Returns why a manifest store does not count, before a reader is asked, which might see another one in it; null where it does. Throws
 * `MANIFEST_TOO_COMPLEX`.
 */
function refuseStore(name: string, store: Uint8Array): string | null {
  refuseCostlyChain(name, store);
  try {
    readManifestStore(store);
    return null;
  } catch (error) {
    return `the manifest store cannot be read in one way: ${(error as Error).message}`;
  }
}

/**
 * Reads an asset whose signer is not known here. The readers know one bundle of anchors: whether the signer has one of a
 * time-stamp authority only shows without those.
 */
async function readUnknownSigner(
  lists: TrustLists,
  read: (anchors: string | null) => Promise<AssetReading>,
): Promise<AssetReading> {
  const reading = await read(lists.pem);
  if (!isTrusted(reading) || lists.pem === lists.signersPem) return reading;
  return isTrusted(await read(lists.signersPem)) ? reading : { ...reading, validation_state: 'Valid' };
}

function isTrusted(reading: AssetReading): reading is ManifestReport {
  return reading !== 'none' && !('problem' in reading) && reading.validation_state === 'Trusted';
}

/** Throws where the file is damaged, or nothing that could have a manifest. */
function withoutManifest(problem: AppError | null, warnings: readonly Warning[] = []): AssetResult {
  if (problem !== null) throw problem;
  return { reading: 'none', store: null, leftOut: null, crJsonAsset: null, warnings };
}

async function embeddedStore(
  source: ByteSource,
  found: ReadableLayout | PictureManifest | null,
  signal: AbortSignal,
): Promise<Buffer | null> {
  if (found === null || found.manifest === null) return null;
  const ranges = 'unwrap' in found ? [found.manifest] : storeRangesOf(found);
  const sizeBytes = ranges.reduce((sum, { length }) => sum + length, 0);
  if (sizeBytes > MAX_STORE_BYTES) {
    throw new AppError('MANIFEST_TOO_LARGE', { name: source.name, sizeBytes, limitBytes: MAX_STORE_BYTES });
  }
  if (!('unwrap' in found)) return await readStore(source, found, signal);
  const { offset, length } = found.manifest;
  return found.unwrap(await readRange(source, offset, length, signal));
}

/** Reasons for which a file is taken to have no sidecar next to it: some servers refuse names that they do not have. */
const ABSENT: ReadonlySet<Reason> = new Set<Reason>([
  'SOURCE_NOT_FOUND',
  'SOURCE_IS_FOLDER',
  'SOURCE_NOT_REGULAR',
  'SOURCE_OUTSIDE_ROOTS',
  'HTTP_NOT_FOUND',
  'HTTP_FORBIDDEN',
  'HTTP_REFUSED',
  'S3_OBJECT_MISSING',
  'S3_ACCESS_DENIED',
]);

/**
 * Returns the manifest store of the sidecar that the request names for this input; null where it names none. Throws what
 * opening it throws, with the field of the request, and `MANIFEST_TOO_LARGE`.
 */
async function namedSidecar(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<Buffer | null> {
  const { sidecars = [] } = (work.params ?? {}) as VerifyParams;
  const index = sidecars.findIndex(({ input_index: inputIndex }) => inputIndex === work.inputIndex);
  const source = sidecars[index]?.source;
  if (source === undefined) return null;
  return await readSidecar(source, work, context, services).catch(faultOf(`params.sidecars[${index}].source`));
}

/** Returns the manifest store in `<stem>.c2pa` next to the input; null where there is none. */
async function adjacentSidecar(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<Buffer | null> {
  const source = sidecarOf(work.input);
  if (source === null) return null;
  try {
    const store = await readSidecar(source, work, context, services);
    // Some servers answer with a page of their own where they have no such file.
    return source.type === 'local_file_path' || isSuperbox(store) ? store : null;
  } catch (error) {
    if (error instanceof AppError && ABSENT.has(error.reason)) return null;
    throw error;
  }
}

/** Returns true for what starts as a manifest store does (ISO/IEC 19566-5), damaged or not. */
function isSuperbox(bytes: Buffer): boolean {
  return bytes.toString('latin1', 4, 8) === 'jumb';
}

async function readSidecar(
  source: ApiInputRef,
  { inputIndex }: InputWork,
  { signal, scratch }: InputContext,
  { inputs }: OperationServices,
): Promise<Buffer> {
  // Budgets depend on the input alone, so its size is not reported.
  const file = await inputs.openFile(source, inputIndex, { signal, scratch });
  try {
    const { name, sizeBytes } = file;
    if (sizeBytes > MAX_STORE_BYTES) {
      throw new AppError('MANIFEST_TOO_LARGE', { name, sizeBytes, limitBytes: MAX_STORE_BYTES });
    }
    return await readRange(file, 0, sizeBytes, signal);
  } finally {
    await file.close();
  }
}

/**
 * Returns the reference to the sidecar of a file; null where its address cannot be derived, such as from a presigned one,
 * where its name would be too long for a file, and for a sidecar.
 */
function sidecarOf(input: ApiInputRef): ApiInputRef | null {
  if (input.type === 'local_file_path') {
    const path = withSidecarName(input.path);
    const isNameable = nameablePath.safeParse(path).success;
    return path === input.path || !isNameable ? null : { type: input.type, path };
  }
  if (input.type !== 'remote_file_url' || input.url.endsWith('/')) return null;
  // The key of an object is not encoded, and holds any character.
  if (!isS3Url(input.url) && /[?#]/.test(input.url)) return null;
  const url = withSidecarName(input.url);
  return url === input.url ? null : { type: input.type, url };
}

function withSidecarName(address: string): string {
  const start = address.lastIndexOf('/') + 1;
  return `${address.slice(0, start)}${stemOf(address.slice(start))}.c2pa`;
}
