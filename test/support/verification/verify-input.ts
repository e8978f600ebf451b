import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import { localFolderOpener } from '#inputs/local/local-folder.ts';
import type { InputContext, InputWork, OperationServices, VerificationOutcome } from '#operations/operation.ts';
import { verify } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { type TrustSettings, TrustStore } from '#provenance/trust-store.ts';
import { NO_LOG } from '../jobs/test-jobs.ts';

const BOUNDS = { maxFiles: 100_000, maxBytes: 1e12, maxDepth: 16 };

/** Shared, because its threads load the reader once. */
const fragments = createFragmentReader();

const NO_LISTS: TrustSettings = {};

/** The settings of a verification beside its input. */
export interface Asked {
  readonly params?: VerifyParams;
  readonly output?: ApiOutputSpec;
  readonly rubricsDir?: string;
  readonly trust?: TrustSettings;
}

/** Verifies an input of this host as a worker does it. `folder` takes scratch space and outputs. */
export async function verifyInput(
  input: ApiInputRef,
  folder: string,
  { params = {}, output, rubricsDir, trust = NO_LISTS }: Asked = {},
): Promise<VerificationOutcome> {
  const dataDir = join(folder, 'data');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const scratch = new ScratchSpace({ dir: join(folder, 'scratch'), dataDir }, key);
  const context: InputContext = {
    signal: new AbortController().signal,
    scratch,
    progress: () => undefined,
    opened: () => undefined,
    reached: () => undefined,
    reserveOutputPath: () => Promise.resolve(),
    confirmLease: () => Promise.resolve(),
    awaitSignature: (sign) => sign(),
  };
  const lists = await TrustStore.open({ settings: trust, log: NO_LOG });
  const policy = { roots: undefined, protectedPaths: [] };
  const services: Pick<OperationServices, 'inputs' | 'outputs' | 'fragments' | 'rubricsDir' | 'trust'> = {
    inputs: new InputResolver(
      { local_file_path: localFileOpener(policy) },
      { local_folder_path: localFolderOpener(policy, BOUNDS) },
    ),
    outputs: new LocalSink({ baseDir: join(folder, 'output'), dataDir }),
    fragments,
    trust: lists,
    ...(rubricsDir !== undefined && { rubricsDir }),
  };
  const work: InputWork = { ...key, operation: 'verify', identity: null, input, output: output ?? null, params };
  try {
    return await verify.run(work, context, services as OperationServices);
  } finally {
    lists.close();
    await scratch.remove();
  }
}
