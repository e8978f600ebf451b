import { hash } from 'node:crypto';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { AUDIO_EXTENSIONS, AUDIO_ONLY_EXTENSIONS, readSignableFile, type SignableFile } from '#formats/formats.ts';
import { outputLeaf } from '#outputs/output-path.ts';
import { type ManifestDraft, signAgainIfLarger } from '#provenance/manifest-author.ts';
import type { OutputChecker } from '#provenance/official-reader.ts';
import { earlierOutput } from './earlier-output.ts';
import { draftManifest } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import { readBack } from './read-back.ts';
import { signSidecar } from './sidecar/sign-sidecar.ts';

/** Extensions that the audio operation signs, for messages. */
const SIGNED_EXTENSIONS = [...AUDIO_EXTENSIONS].join(', ');

/** Throws where the operation does not sign a file of this layout. */
type FileCheck = (name: string, layout: MediaLayout) => void;

/**
 * Signs one video or audio file: opens it as bytes, plans the signed output as copies and insertions, streams it once
 * while hashing, has the SDK sign the hash, and commits the output. If the request asks for a sidecar, the file is signed
 * as it is, whatever it holds. Throws an AppError where any step fails.
 */
export async function signFile(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
  check: FileCheck,
): Promise<InputOutcome> {
  const source = await services.inputs.openFile(work.input, work.inputIndex, context);
  try {
    if (isForSidecar(work)) return await signSidecar(source, work, context, services);
    const file = await readSignableFile(source, context.signal);
    check(source.name, file.layout);
    return await signIdentified(file, work, context, services);
  } finally {
    await source.close();
  }
}

function isForSidecar({ params }: InputWork): boolean {
  return (params as C2paParams | undefined)?.manifest === 'sidecar';
}

async function signIdentified(
  opened: SignableFile,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const { leaf, warnings } = outputLeaf(
    opened.source.name,
    opened.layout.extensions,
    services.outputs.namingOf(work.output),
  );
  const destination = services.outputs.destinationOf(work.output, leaf);
  await context.reserveOutputPath(destination);
  context.reached('resolved');

  const file = await pinIfSigned(opened, context);
  const { draft, warnings: found } = await draftManifest(file, leaf, work, context, services);
  const outcome =
    (await earlierOutput(destination, work, context, services)) ??
    (await signAgainIfLarger(() => writeSigned(file, draft, destination, work, context, services)));
  return { ...outcome, warnings: [...warnings, ...(file.layout.warnings ?? []), ...found, ...outcome.warnings] };
}

/** Plans the output, writes and signs it, has it read back and commits it. Discards it when anything fails. */
async function writeSigned(
  { source, format, layout }: SignableFile,
  draft: ManifestDraft,
  destination: string,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const { signal } = context;
  const manifestSizeBytes = await draft.measure([format.placeholderBinding(layout)], signal);
  const { plan, binding } = format.planEmbedding(layout, manifestSizeBytes);

  const totalBytes = outputSizeBytes(plan);
  const sink = await services.outputs.stageFile(destination, totalBytes, work, signal, context.scratch);
  try {
    context.reached('staged');
    const digests = await executePlan(plan, source, sink, {
      signal,
      onProgress: (bytesDone) => context.progress(bytesDone, totalBytes),
    });
    context.reached('copied');
    const { manifest, warnings } = await context.awaitSignature(() => draft.sign([binding(digests)], signal));
    await fillHole(plan, sink, manifest, signal);
    const manifestDigest = hash('sha256', manifest);
    context.reached('signed');
    await sealAndReadBack(sink, services.outputChecker, layout.mediaType, totalBytes, context);
    // The manifest states that the signed source was valid: it must not have changed until the output is committed.
    if (layout.manifest !== null) await source.checkUnchanged?.(signal);
    await context.confirmLease();
    await sink.commit(signal);
    context.reached('delivered');
    return { outputPath: sink.destination, warnings, manifestDigest };
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

/** Syncs the output to the disk and, with a checker, has it read back. */
async function sealAndReadBack(
  sink: ByteSink,
  checker: OutputChecker | null,
  mediaType: string,
  sizeBytes: number,
  context: InputContext,
): Promise<void> {
  const { stagedPath, isOnDisk = false } = sink;
  const seal = async (): Promise<void> => {
    await sink.seal(context.signal);
    context.reached('sealed');
  };
  if (checker === null || stagedPath === undefined) return await seal();
  const check = () => readBack(checker, { path: stagedPath, mediaType }, sizeBytes, context);
  if (!isOnDisk) {
    await seal();
    return await check();
  }
  // The reader gets the bytes from the page cache while they are synced, so neither waits for the other.
  await mapConcurrent([seal, check], 2, (step) => step());
}

/** Refuses what the audio operation signs. Throws `VIDEO_IS_AUDIO_FILE`. */
export function refuseAudioContainer(name: string, layout: MediaLayout): void {
  if (layout.extensions.some((extension) => AUDIO_ONLY_EXTENSIONS.has(extension))) {
    throw new AppError('VIDEO_IS_AUDIO_FILE', { name, mediaType: layout.mediaType });
  }
}

/** Refuses what the audio operation does not sign. Throws `AUDIO_HAS_VIDEO` or `AUDIO_CONTAINER_UNSUPPORTED`. */
export function refuseVideo(name: string, layout: MediaLayout): void {
  if (layout.hasVideo) throw new AppError('AUDIO_HAS_VIDEO', { name });
  if (!layout.extensions.some((extension) => AUDIO_EXTENSIONS.has(extension))) {
    const { mediaType } = layout;
    throw new AppError('AUDIO_CONTAINER_UNSUPPORTED', { name, mediaType, extensions: SIGNED_EXTENSIONS });
  }
}

/**
 * Returns the file ready to be validated by the SDK, which reads files of this host only, and then copied as it was
 * validated: pinned or copied, and with the layout of those very bytes. A file without a manifest is returned as it is.
 * Throws `SOURCE_CHANGED` when the copy has another layout than the file had.
 */
export async function pinIfSigned(
  file: SignableFile,
  { scratch, signal }: { readonly scratch: ScratchSpace; readonly signal: AbortSignal },
): Promise<SignableFile> {
  if (file.layout.manifest === null) return file;
  const source = await pinnedCopyOf(file.source, scratch, signal);
  const kept = await readSignableFile(source, signal);
  // The operation, its destination and its media type were decided by the first layout.
  if (!isAlike(kept.layout, file.layout)) throw new AppError('SOURCE_CHANGED', { name: source.name });
  return kept;
}

function isAlike(first: MediaLayout, second: MediaLayout): boolean {
  return (
    first.mediaType === second.mediaType &&
    first.hasVideo === second.hasVideo &&
    (first.manifest === null) === (second.manifest === null)
  );
}
