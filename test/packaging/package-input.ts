import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { PackageParams } from '#contract/package-request.ts';
import type { WarningReason } from '#errors/catalogue.ts';
import { InputResolver, localFolderOpener } from '#inputs/input-resolver.ts';
import type { InputContext, InputOutcome, InputPhase, InputWork, OperationRooms } from '#operations/operation.ts';
import { packageAndSign } from '#operations/package-and-sign.ts';
import { packageFolder } from '#operations/package-folder.ts';
import { LocalSink } from '#outputs/local/local-sink.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import { testAuthor } from '../provenance/sign-wav.ts';

const BOUNDS = { maxFiles: 10_000, maxBytes: 1e12, maxDepth: 16 };

interface PackageOptions {
  readonly signal?: AbortSignal;
  /** Where data and scratch are kept, and the output goes. */
  readonly work?: string;
  readonly outputFolder?: string;
  readonly reached?: (phase: InputPhase) => void;
  readonly progress?: (bytesDone: number, bytesTotal: number) => void;
  /** Puts another sink in the place of the local one. */
  readonly sink?: (local: OutputSink) => OutputSink;
  /** Also signs what was packaged, without reading it back. */
  readonly sign?: boolean;
}

/** What an input became, and the reasons of its warnings. */
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
    claimDestination: () => Promise.resolve(),
    mayDeliver: () => Promise.resolve(),
    settling: () => undefined,
  };
  const local = new LocalSink({ baseDir: options.outputFolder ?? join(work, 'output'), dataDir });
  const rooms = roomsWith(options.sink?.(local) ?? local);
  try {
    const outcome =
      options.sign === true
        ? await packageAndSign(input, context, { ...rooms, author: testAuthor() })
        : await packageFolder(input, context, rooms);
    return { ...outcome, reasons: outcome.warnings.map(({ reason }) => reason) };
  } finally {
    await scratch.remove();
  }
}

/** The rooms that packaging enters; nothing is signed, or read back. */
function roomsWith(outputs: OutputSink): OperationRooms {
  const openFolder = localFolderOpener({ roots: undefined, protectedPaths: [] }, BOUNDS);
  const rooms: Pick<OperationRooms, 'inputs' | 'outputs' | 'fragmentChecks'> = {
    fragmentChecks: null,
    inputs: new InputResolver({}, { local_folder_path: openFolder }),
    outputs,
  };
  return rooms as OperationRooms;
}
