import { hash } from 'node:crypto';
import { type LocalSource, openedPathOf, readRange } from '#bytes/byte-source.ts';
import { localCopyOf } from '#bytes/local-copies.ts';
import { AppError } from '#errors/app-error.ts';
import { readSignableFile } from '#formats/formats.ts';
import { isManifestOf } from '#provenance/instance-id.ts';
import type { DescribedFile } from './describe-ingredient.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import type { SidecarOutputs } from './output-names.ts';
import { readBack } from './read-back.ts';

/** Larger files are no sidecars of this service. */
const MAX_SIDECAR_BYTES = 64 * 1024 * 1024;

/**
 * Returns the output that an earlier run of an input committed to its destination, so that it is not signed again with other
 * bytes; null where there is none, or another file. The warnings of the earlier run are not known. The result of such a run is lost where the service exited before it was
 * recorded, or where the job store was restored from a copy. Throws where the signal is aborted.
 */
export async function earlierOutput(
  destination: string,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome | null> {
  return await withCommitted(destination, context, services, async (source) => {
    const { layout } = await readSignableFile(source, context.signal);
    const { manifest, mediaType } = layout;
    const store = manifest && (await readRange(source, manifest.offset, manifest.length, context.signal));
    if (store === null || !isManifestOf(store, work)) return null;
    await check(source, { mediaType }, context, services);
    return { outputPath: destination, warnings: [], manifestDigest: hash('sha256', store) };
  });
}

/** Returns the sidecar of an earlier run by the destinations of an input, and its copy where there is one, as `earlierOutput` does. */
export async function earlierSidecar(
  { copy, sidecar }: SidecarOutputs,
  { source: signed, layout: { mediaType } }: DescribedFile,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome | null> {
  return await withCommitted(sidecar, context, services, async (source) => {
    if (source.sizeBytes > MAX_SIDECAR_BYTES) return null;
    const store = await readRange(source, 0, source.sizeBytes, context.signal);
    if (!isManifestOf(store, work)) return null;
    const asset = { mediaType, detachedStore: store };
    const checked = async (file: LocalSource) => {
      await check(file, asset, context, services);
      const manifestDigest = hash('sha256', store);
      return { outputPath: copy ?? sidecar, sidecarPath: sidecar, warnings: [], manifestDigest };
    };
    if (copy !== null) return await withCommitted(copy, context, services, checked);
    return await checked(await localCopyOf(signed, context.scratch, context.signal));
  });
}

/** Opens a committed file. Resolves with null where there is none, or it is damaged, so that the new one replaces it. */
async function withCommitted(
  destination: string,
  { signal }: InputContext,
  { outputs }: OperationServices,
  use: (source: LocalSource) => Promise<InputOutcome | null>,
): Promise<InputOutcome | null> {
  const source = await outputs.openFile(destination);
  if (source === null) return null;
  try {
    return await use(source);
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError)) throw error;
    return null;
  } finally {
    await source.close();
  }
}

async function check(
  source: LocalSource,
  asset: { readonly mediaType: string; readonly detachedStore?: Buffer },
  context: InputContext,
  { outputChecker }: OperationServices,
): Promise<void> {
  const whole = { ...asset, path: openedPathOf(source) };
  if (outputChecker !== null) await readBack(outputChecker, whole, source.sizeBytes, context);
  context.reached('delivered');
}
