import type { ByteSource } from '#bytes/byte-source.ts';
import { digestPlan } from '#bytes/execute-plan.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { AppError, unlessRefused } from '#errors/app-error.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import { isManifestOf } from '#provenance/instance-id.ts';
import { wholeFile } from '../copy-files.ts';
import type { Rendition } from '../media-part.ts';
import { verifyParts } from '../verification/part-findings.ts';
import { hashOutput } from '../verification/verify-output.ts';

/** A sealed publication, and the destination at which an earlier run of its input may have committed it. */
interface Publishing {
  readonly staged: Pick<SourceFolder, 'open'>;
  readonly renditions: readonly Rendition[];
  /** All other files of it. */
  readonly otherPaths: Iterable<string>;
  readonly destination: string;
  readonly key: StagingKey;
}

/**
 * Returns the manifest of a publication that an earlier run of the same input committed, so that it is not replaced by one with
 * another signature; null where there is none, or not all of it. Such a publication has the same files, apart from the
 * manifest in its init segments, which names the input. Throws where the signal is aborted.
 */
export async function earlierManifest(
  { staged, renditions, otherPaths, destination, key }: Publishing,
  outputs: Pick<OutputSink, 'openFile'>,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const committed = {
    open: async (path: string): Promise<ByteSource> => {
      const file = await outputs.openFile(`${destination}/${path}`);
      if (file === null) throw new AppError('OUTPUT_PART_INVALID', { file: path, problem: 'it is not there' });
      return file;
    },
  };
  const find = async (): Promise<Buffer | null> => {
    const inits = renditions.slice(0, 1).map(({ init }) => ({ init, fragments: [] }));
    const store = (await verifyParts(committed, inits, signal)).manifests[0]?.store;
    if (store === undefined || !isManifestOf(store, key)) return null;
    await hashOutput(committed, renditions, signal);
    const fragments = renditions.flatMap((rendition) => rendition.fragments.map(({ path }) => path));
    for (const path of new Set([...fragments, ...otherPaths]))
      if (Buffer.compare(await digestIn(staged, path, signal), await digestIn(committed, path, signal)) !== 0)
        return null;
    return store;
  };
  return await unlessRefused(find(), () => !signal.aborted);
}

async function digestIn(folder: Pick<SourceFolder, 'open'>, path: string, signal: AbortSignal): Promise<Uint8Array> {
  return await withSource(folder, { path }, signal, async (source) => {
    return (await digestPlan(wholeFile(source.sizeBytes), source, { signal })).flat;
  });
}
