import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { InputResolver, localFolderOpener } from '#inputs/input-resolver.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from '#operations/operation.ts';
import { packageFolder } from '#operations/package-folder.ts';
import { LocalSink } from '#outputs/local-sink.ts';

const BOUNDS = { maxFiles: 10_000, maxBytes: 1e12, maxDepth: 16 };

/** Packages a folder as a worker does, into `output` beside it, and returns what the input became. */
export async function packageInput(
  folder: string,
  params: PackageParams = {},
  { signal = new AbortController().signal, work = `${folder}-work` }: { signal?: AbortSignal; work?: string } = {},
): Promise<InputOutcome & { readonly scratchFolder: string }> {
  const dataDir = join(work, 'data');
  const scratchFolder = join(work, 'scratch');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const scratch = new ScratchSpace({ dir: scratchFolder, dataDir }, key);
  const input: InputWork = {
    ...key,
    operation: 'package',
    input: { type: 'local_folder_path', path: folder },
    output: null,
    params,
  };
  const context: InputContext = {
    signal,
    scratch,
    progress: () => undefined,
    reached: () => undefined,
    claimDestination: () => Promise.resolve(),
    mayDeliver: () => Promise.resolve(),
  };
  try {
    return { ...(await packageFolder(input, context, roomsFor(work, dataDir))), scratchFolder };
  } finally {
    await scratch.remove();
  }
}

/** The rooms that packaging enters; nothing is signed. */
function roomsFor(work: string, dataDir: string): OperationRooms {
  const rooms: Pick<OperationRooms, 'inputs' | 'outputs'> = {
    inputs: new InputResolver(
      {},
      { local_folder_path: localFolderOpener({ roots: undefined, protectedPaths: [] }, BOUNDS) },
    ),
    outputs: new LocalSink({ baseDir: join(work, 'output'), dataDir }),
  };
  return rooms as OperationRooms;
}
