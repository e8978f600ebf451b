import { createHash } from 'node:crypto';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { outputLeaf } from '#outputs/placement.ts';
import type { OutputReader } from '#provenance/authoring/manifest-author.ts';
import { type IdentifiedFile, identifyFile, keepSigned } from './identify-file.ts';
import { ingredientsOf } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';

/** An output of at most so many bytes is read back while the next input is begun: it takes the reader little memory. */
const READ_BESIDE_NEXT_BYTES = 1024 * 1024;

/** Refuses a file that the operation does not sign, by what its bytes say. */
export type FileAdmission = (name: string, layout: MediaLayout) => void;

/**
 * Signs one video or audio file: opens it as bytes, plans the signed output as copies and insertions, streams it once
 * while hashing, has the SDK sign the hash, and lands the output whole.
 */
export async function signFile(
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
  admit: FileAdmission,
): Promise<InputOutcome> {
  const source = await rooms.inputs.openFile(work.input, work.inputIndex, context);
  try {
    const file = await identifyFile(source, context.signal);
    admit(source.name, file.layout);
    return await signIdentified(file, work, context, rooms);
  } finally {
    await source.close();
  }
}

async function signIdentified(
  opened: IdentifiedFile,
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const { signal } = context;
  const { leaf, warnings } = outputLeaf(
    opened.source.name,
    opened.layout.extensions,
    rooms.outputs.namingOf(work.output),
  );
  const destination = rooms.outputs.placeFile(work.output, leaf);
  await context.claimDestination(destination);
  context.reached('resolved');

  const file = await keepSigned(opened, context);
  const { format, layout } = file;
  const params = work.params as C2paParams | undefined;
  const ingredients = await ingredientsOf(file, params, work.inputIndex, rooms.inputs, context);
  const draft = await rooms.author.draft(
    {
      title: leaf,
      mediaType: layout.mediaType,
      assertions: params?.assertions ?? [],
      ...ingredients.roles,
      actions: [],
    },
    signal,
  );
  const manifestSizeBytes = await draft.measure(format.placeholderBinding(layout), signal);
  const { plan, binding } = format.planEmbedding(layout, manifestSizeBytes);

  const totalBytes = outputSizeBytes(plan);
  const sink = await rooms.outputs.stageFile(destination, totalBytes, work, signal, context.scratch);
  let digest: string;
  try {
    context.reached('staged');
    const digests = await executePlan(plan, file.source, sink, {
      signal,
      onProgress: (bytesDone) => context.progress(bytesDone, totalBytes),
    });
    context.reached('copied');
    const isBrief = sink.isOnDisk === true && (rooms.reader === null || totalBytes <= READ_BESIDE_NEXT_BYTES);
    if (isBrief) context.settling();
    const manifest = await draft.sign(binding(digests), signal);
    await fillHole(plan, sink, manifest, signal);
    digest = createHash('sha256').update(manifest).digest('hex');
    context.reached('signed');
    await sealAndReadBack(sink, rooms.reader, layout.mediaType, totalBytes, context);
    if (sink.isOnDisk && !isBrief) context.settling();
    // What the manifest says of a signed source must hold until it is said.
    if (file.layout.manifest !== null) await file.source.checkUnchanged?.(signal);
    await context.mayDeliver();
    await sink.commit(signal);
    context.reached('delivered');
  } catch (error) {
    await sink.discard();
    throw error;
  }
  return {
    outputPath: sink.destination,
    warnings: [...warnings, ...(layout.warnings ?? []), ...ingredients.warnings, ...draft.warnings],
    digest,
  };
}

/** Seals the output and, with a reader, has it read back. */
async function sealAndReadBack(
  sink: ByteSink,
  reader: OutputReader | null,
  mediaType: string,
  sizeBytes: number,
  context: InputContext,
): Promise<void> {
  const { stagedPath, isOnDisk = false } = sink;
  const seal = async (): Promise<void> => {
    await sink.seal(context.signal);
    context.reached('sealed');
  };
  if (reader === null || stagedPath === undefined) return await seal();
  const check = () => readBack(reader, stagedPath, mediaType, sizeBytes, context);
  if (!isOnDisk) {
    await seal();
    return await check();
  }
  // What is read back is what the disk is given: neither has to wait for the other.
  await sideBySide([seal, check], 2, (step) => step());
}

/**
 * The slowest reading of an output that is still waited for, in bytes per second, and what every reading may take: the
 * reader's time also grows with the square of a file's boxes (20,000 fragments in one file took it over a minute).
 */
const SLOWEST_READING_BYTES_PER_S = 5 * 1024 * 1024;
const READING_ALLOWANCE_MS = 600_000;
/** The official reader tells no progress; so often the job is told that it is still at work. */
const SIGN_OF_LIFE_INTERVAL_MS = 30_000;

/** Has the official reader check the staged output, in bounded time. */
async function readBack(
  reader: OutputReader,
  stagedPath: string,
  mediaType: string,
  sizeBytes: number,
  context: InputContext,
): Promise<void> {
  const boundMs = READING_ALLOWANCE_MS + (sizeBytes / SLOWEST_READING_BYTES_PER_S) * 1000;
  const signOfLife = setInterval(() => context.progress(sizeBytes, sizeBytes), SIGN_OF_LIFE_INTERVAL_MS);
  const late = AbortSignal.timeout(Math.ceil(boundMs));
  try {
    await reader.readBack(stagedPath, mediaType, AbortSignal.any([context.signal, late]));
  } catch (cause) {
    if (late.aborted && !context.signal.aborted) throw new AppError('READ_BACK_TIMED_OUT', { boundMs }, { cause });
    throw cause;
  } finally {
    clearInterval(signOfLife);
  }
  context.reached('verified');
}
