import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { PackageParams } from '#contract/package-request.ts';
import type { WarningReason } from '#errors/catalogue.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFolderOpener } from '#inputs/local/local-folder.ts';
import type { InputContext, InputOutcome, InputPhase, InputWork, OperationServices } from '#operations/operation.ts';
import { packageAndSign, packageWithoutSigning } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import { testAuthor } from '../support/manifests/sign-wav.ts';

const BOUNDS = { maxFiles: 10_000, maxBytes: 1e12, maxDepth: 16 };

interface PackageOptions {
  readonly signal?: AbortSignal;
  /** The folder of data, scratch space and output. */
  readonly work?: string;
  readonly outputFolder?: string;
  readonly reached?: (phase: InputPhase) => void;
  readonly progress?: (bytesDone: number, bytesTotal: number) => void;
  /** Puts another sink in the place of the local one. */
  readonly sink?: (local: OutputSink) => OutputSink;
  /** Also signs what was packaged, without reading it back. */
  readonly sign?: boolean;
  readonly author?: ManifestAuthor;
}

/** The result of an input, and the reasons of its warnings. */
interface Packaged extends InputOutcome {
  readonly reasons: readonly WarningReason[];
}

/** Packages a folder as a worker does, and returns what the input became. */
export async function packageInput(
  folder: string,
  params: PackageParams = {},
  { signal = new AbortController().signal, work = `${folder}-work`, ...options }: PackageOptions = {},
): Promise<Packaged> {
  const dataDir = join(work, 'data');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const scratch = new ScratchSpace({ dir: join(work, 'scratch'), dataDir }, key);
  const input: InputWork = {
    ...key,
    operation: options.sign === true ? 'c2pa-package' : 'package',
    identity: options.sign === true ? 'default' : null,
    input: { type: 'local_folder_path', path: folder },
    output: null,
    params,
  };
  const context: InputContext = {
    signal,
    scratch,
    progress: options.progress ?? (() => undefined),
    opened: () => undefined,
    reached: options.reached ?? (() => undefined),
    reserveOutputPath: () => Promise.resolve(),
    confirmLease: () => Promise.resolve(),
    awaitSignature: (sign) => sign(),
  };
  const local = new LocalSink({ baseDir: options.outputFolder ?? join(work, 'output'), dataDir });
  const services = servicesWith(options.sink?.(local) ?? local);
  try {
    const outcome =
      options.sign === true
        ? await packageAndSign.run(input, context, { ...services, author: options.author ?? testAuthor() })
        : await packageWithoutSigning.run(input, context, services);
    return { ...outcome, reasons: outcome.warnings.map(({ reason }) => reason) };
  } finally {
    await scratch.remove();
  }
}

/** Services for packaging, without signing and read-back. */
function servicesWith(outputs: OutputSink): OperationServices {
  const openFolder = localFolderOpener({ roots: undefined, protectedPaths: [] }, BOUNDS);
  const services: Pick<OperationServices, 'inputs' | 'outputs' | 'manifestDefaults' | 'fragmentChecks'> = {
    fragmentChecks: null,
    manifestDefaults: { actions: [] },
    inputs: new InputResolver({}, { local_folder_path: openFolder }),
    outputs,
  };
  return services as OperationServices;
}
