import { createHash } from 'node:crypto';
import { type ByteSource, openedPathOf, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { readSignableFile } from '#formats/formats.ts';
import { isManifestOf } from '#provenance/instance-id.ts';
import type { InputContext, InputWork, OperationServices } from './operation.ts';
import { readBack } from './read-back.ts';

/** An output of an earlier run of the same input. */
interface EarlierOutput {
  readonly outputPath: string;
  /** SHA-256 of the manifest in hexadecimal. */
  readonly manifestDigest: string;
}

/**
 * Returns the output that an earlier run of an input committed to its destination, so that it is not signed again with other
 * bytes; null where there is none, or another file. The result of such a run is lost where the service exited before it was
 * recorded, or where the job store was restored from a copy. Throws where the signal is aborted.
 */
export async function earlierOutput(
  destination: string,
  work: InputWork,
  context: InputContext,
  { outputs, outputChecker }: OperationServices,
): Promise<EarlierOutput | null> {
  const { signal } = context;
  const source = await outputs.openFile(destination);
  if (source === null) return null;
  try {
    const { layout } = await readSignableFile(source, signal);
    const store = await storeOf(source, layout.manifest, signal);
    if (store === null || !isManifestOf(store, work)) return null;
    const asset = { path: openedPathOf(source), mediaType: layout.mediaType };
    if (outputChecker !== null) await readBack(outputChecker, asset, source.sizeBytes, context);
    context.reached('delivered');
    return { outputPath: destination, manifestDigest: createHash('sha256').update(store).digest('hex') };
  } catch (error) {
    // It is damaged, or no output of this service. The new one replaces it.
    if (signal.aborted || !(error instanceof AppError)) throw error;
    return null;
  } finally {
    await source.close();
  }
}

async function storeOf(
  source: ByteSource,
  manifest: { readonly offset: number; readonly length: number } | null,
  signal: AbortSignal,
): Promise<Buffer | null> {
  return manifest === null ? null : await readRange(source, manifest.offset, manifest.length, signal);
}
