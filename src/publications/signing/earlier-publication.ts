import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { AppError, unlessRefused } from '#errors/app-error.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import { isManifestOf } from '#provenance/instance-id.ts';
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

/** Bytes that are compared at once. */
const COMPARED_BYTES = 1024 * 1024;

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
      if (!(await areSame(staged, committed, path, signal))) return null;
    return store;
  };
  return await unlessRefused(find(), () => !signal.aborted);
}

async function areSame(
  one: Pick<SourceFolder, 'open'>,
  other: Pick<SourceFolder, 'open'>,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  return await withSource(one, { path }, signal, (a) =>
    withSource(other, { path }, signal, async (b) => {
      if (a.sizeBytes !== b.sizeBytes) return false;
      for (let offset = 0; offset < a.sizeBytes; offset += COMPARED_BYTES) {
        const length = Math.min(COMPARED_BYTES, a.sizeBytes - offset);
        if (!(await readRange(a, offset, length, signal)).equals(await readRange(b, offset, length, signal)))
          return false;
      }
      return true;
    }),
  );
}
