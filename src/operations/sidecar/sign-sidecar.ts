import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { type ByteSource, openedPathOf, readRange } from '#bytes/byte-source.ts';
import { digestPlan, executePlan } from '#bytes/execute-plan.ts';
import { localCopyOf, pinnedCopyOf } from '#bytes/local-copies.ts';
import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import type { Warning } from '#errors/warning.ts';
import { type FormatHandler, HEAD_SIZE_BYTES } from '#formats/format-handler.ts';
import { recogniseFormat } from '#formats/formats.ts';
import { placeholderWholeHash, planWholeHash } from '#formats/hard-binding.ts';
import { linkWarnings } from '#formats/matroska-links.ts';
import { beginsWithText } from '#formats/text-beginning.ts';
import { unsupportedMediaType } from '#formats/unsupported-containers.ts';
import { type ManifestDraft, signAgainIfLarger } from '#provenance/manifest-author.ts';
import { assetReadingOf } from '#provenance/official-reader.ts';
import { stillMediaType } from '#provenance/still-media-type.ts';
import { type DescribedFile, elsewhereWarnings } from '../describe-ingredient.ts';
import { earlierSidecar } from '../earlier-output.ts';
import { draftManifest } from '../ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from '../operation.ts';
import { type SidecarOutputs, sidecarLeaves } from '../output-names.ts';
import { readBack } from '../read-back.ts';

/** The media type of bytes that tell nothing about themselves (RFC 2046 §4.5.1). */
const ANY_BYTES = 'application/octet-stream';

/** A file that is signed with a sidecar, and the manifest that lacks only its hard binding. */
interface SidecarSigning {
  readonly file: DescribedFile;
  readonly draft: ManifestDraft;
  readonly destinations: SidecarOutputs;
}

/**
 * Signs a file of any kind with a manifest in a file of its own: hashes all its bytes in one pass, which copies them as well
 * unless the sidecar is the only output, has the SDK sign the hash, and commits both. Throws `SOURCE_CHANGED` where the
 * source is not the one that was hashed any more, and an AppError where another step fails; nothing is committed then.
 */
export async function signSidecar(
  source: ByteSource,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const file = await describeSource(source, context);
  const destinations = await reserveDestinations(source.name, work, context, services);
  context.reached('resolved');

  const { draft, warnings } = await draftManifest(file, source.name, work, context, services);
  const outcome =
    (await earlierSidecar(destinations, file, work, context, services)) ??
    (await copyAndSign({ file, draft, destinations }, work, context, services));
  return { ...outcome, warnings: [...elsewhereWarnings(file.layout), ...warnings, ...outcome.warnings] };
}

/** Stages the copy, where there is one, hashes the source, and commits both. Discards what is staged when anything fails. */
async function copyAndSign(
  { file, draft, destinations }: SidecarSigning,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const { signal, scratch } = context;
  const { source } = file;
  const stageFile = (destination: string, sizeBytes: number): Promise<ByteSink> =>
    services.outputs.stageFile(destination, sizeBytes, work, signal, scratch);
  const copy = destinations.copy === null ? null : await stageFile(destinations.copy, source.sizeBytes);
  let sidecar: ByteSink | null = null;
  try {
    context.reached('staged');
    const isReadAlone = copy === null && services.outputChecker !== null;
    const hashed = isReadAlone ? await localCopyOf(source, scratch, signal) : source;
    const binding = await bindingOf(hashed, copy, context);
    const { manifest, warnings } = await signAgainIfLarger(async () => {
      await draft.measure([placeholderWholeHash()], signal);
      return await context.awaitSignature(() => draft.sign([binding], signal));
    });
    context.reached('signed');
    sidecar = await stageFile(destinations.sidecar, manifest.length);
    await sidecar.write(manifest, 0, signal);
    await sealBoth({ copy, sidecar }, context);
    await readBothBack({ ...file, source: hashed }, { copy, sidecar }, context, services);
    await source.checkUnchanged?.(signal);
    await context.confirmLease();
    await commitBoth({ copy, sidecar }, signal);
    context.reached('delivered');
    return {
      outputPath: (copy ?? sidecar).destination,
      sidecarPath: sidecar.destination,
      warnings,
      manifestDigest: hash('sha256', manifest),
    };
  } catch (error) {
    await sidecar?.discard();
    await copy?.discard();
    throw error;
  }
}

async function reserveDestinations(
  name: string,
  { output, params }: InputWork,
  context: InputContext,
  { outputs }: OperationServices,
): Promise<SidecarOutputs> {
  const leaves = sidecarLeaves(name, outputs.namingOf(output), (params as C2paParams).copy_source);
  const copy = leaves.copy === null ? null : outputs.destinationOf(output, leaves.copy);
  const sidecar = outputs.destinationOf(output, leaves.sidecar);
  if (copy !== null) await context.reserveOutputPath(copy);
  await context.reserveOutputPath(sidecar);
  return { copy, sidecar };
}

/** Hashes the source, which copies it where there is a copy, and returns the hard binding. */
async function bindingOf(source: ByteSource, copy: ByteSink | null, context: InputContext) {
  const { plan, binding } = planWholeHash(source.sizeBytes);
  const options = {
    signal: context.signal,
    onProgress: (bytesDone: number) => context.progress(bytesDone, source.sizeBytes),
  };
  const digests = await (copy === null ? digestPlan(plan, source, options) : executePlan(plan, source, copy, options));
  context.reached('copied');
  return binding(digests);
}

async function sealBoth({ copy, sidecar }: SidecarOutputs<ByteSink>, context: InputContext): Promise<void> {
  await copy?.seal(context.signal);
  await sidecar.seal(context.signal);
  context.reached('sealed');
}

/** Has the official reader validate the staged sidecar with the staged copy, or with the source where there is none. */
async function readBothBack(
  { source, layout }: DescribedFile,
  { copy, sidecar }: SidecarOutputs<ByteSink>,
  context: InputContext,
  { outputChecker: checker }: OperationServices,
): Promise<void> {
  if (checker === null) return;
  const path = copy === null ? (source.openedPath ?? source.localPath) : copy.stagedPath;
  assert(path !== undefined && sidecar.stagedPath !== undefined, 'what is read back is on this host');
  const asset = { path, mediaType: layout.mediaType, detachedStore: await readFile(sidecar.stagedPath) };
  try {
    await readBack(checker, asset, source.sizeBytes, context);
  } catch (error) {
    // On some file systems nothing but its bytes tells that a file has changed.
    if (copy !== null || !isOtherFile(error)) throw error;
    throw new AppError('SOURCE_CHANGED', { name: source.name }, { cause: error });
  }
}

function isOtherFile(error: unknown): boolean {
  if (!(error instanceof AppError) || error.reason !== 'READ_BACK_FAILED') return false;
  const { codes = [] } = error.details as { readonly codes?: readonly string[] };
  return codes.includes('assertion.dataHash.mismatch');
}

async function commitBoth({ copy, sidecar }: SidecarOutputs<ByteSink>, signal: AbortSignal): Promise<void> {
  if (copy === null) return await sidecar.commit(signal);
  if (sidecar.commitAfter !== undefined) return await sidecar.commitAfter(copy, signal);
  await copy.commit(signal);
  // The copy is committed: the sidecar has to follow, even if the input is stopped now.
  await sidecar.commit(new AbortController().signal);
}

/**
 * Describes a file of any kind by its bytes. Containers that are damaged, or have no handler here, have no layout: a sidecar
 * binds all bytes, whatever they mean. Throws `SIDECAR_SOURCE_SIGNED` for a file that carries a manifest, `SIDECAR_SOURCE_TEXT`, and the
 * errors of the source.
 */
async function describeSource(source: ByteSource, { signal, scratch }: InputContext): Promise<DescribedFile> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_SIZE_BYTES), signal);
  const still = stillMediaType(head);
  if (still !== null) {
    const path = openedPathOf(await pinnedCopyOf(source, scratch, signal));
    const reading = await assetReadingOf({ path, mediaType: still }, null, signal);
    if (reading !== 'none' && !('problem' in reading)) throw alreadySigned(source);
    return withoutLayout(source, still);
  }
  if (await beginsWithText(source, signal)) throw new AppError('SIDECAR_SOURCE_TEXT', { name: source.name });
  const unsupported = unsupportedMediaType(head);
  if (unsupported !== null) return withoutLayout(source, unsupported, await linkWarnings(source, signal));
  const format = await recogniseFormat(source, signal);
  return format === undefined ? withoutLayout(source, ANY_BYTES) : await describeFormat(source, format, signal);
}

async function describeFormat(source: ByteSource, format: FormatHandler, signal: AbortSignal): Promise<DescribedFile> {
  try {
    const layout = await format.readLayout(source, signal);
    if (layout.manifest === null) return { source, layout };
  } catch (error) {
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    return withoutLayout(source, format.mediaType);
  }
  throw alreadySigned(source);
}

function alreadySigned({ name }: ByteSource): AppError {
  return new AppError('SIDECAR_SOURCE_SIGNED', { name });
}

function withoutLayout(source: ByteSource, mediaType: string, warnings: readonly Warning[] = []): DescribedFile {
  return { source, layout: { mediaType, manifest: null, elements: [], xmp: null, warnings } };
}
