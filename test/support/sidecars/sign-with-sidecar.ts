import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { C2paParams } from '#contract/signing.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import type { InputContext, InputOutcome, InputPhase, InputWork, OperationServices } from '#operations/operation.ts';
import { signVideo } from '#operations/registry.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { createOutputChecker, type OutputChecker } from '#provenance/official-reader.ts';
import { testAuthor } from '../manifests/sign-wav.ts';

/** The request of a signing with a sidecar, and what happens meanwhile. */
export interface Wishes {
  readonly params?: C2paParams;
  /** Null: nothing is read back. */
  readonly outputChecker?: OutputChecker | null;
  readonly attempt?: number;
  readonly reached?: (phase: InputPhase) => void;
  readonly confirmLease?: () => Promise<void>;
}

/** Signs a file of this host with a sidecar, as a worker does it. `home` gets `output` and `data`. */
export async function signWithSidecar(
  path: string,
  home: string,
  { params = {}, outputChecker = createOutputChecker(), attempt = 1, reached, confirmLease }: Wishes = {},
): Promise<InputOutcome> {
  const dataDir = join(home, 'data');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt };
  const scratch = new ScratchSpace({ dir: join(home, 'scratch'), dataDir }, key);
  const context: InputContext = {
    signal: new AbortController().signal,
    scratch,
    progress: () => undefined,
    opened: () => undefined,
    reached: (phase) => reached?.(phase),
    reserveOutputPath: () => Promise.resolve(),
    confirmLease: () => confirmLease?.() ?? Promise.resolve(),
    awaitSignature: (sign) => sign(),
  };
  const services: Pick<OperationServices, 'inputs' | 'outputs' | 'author' | 'outputChecker' | 'manifestDefaults'> = {
    inputs: new InputResolver({ local_file_path: localFileOpener({ roots: undefined, protectedPaths: [] }) }),
    outputs: new LocalSink({ baseDir: join(home, 'output'), dataDir }),
    author: testAuthor(),
    outputChecker,
    manifestDefaults: { actions: [] },
  };
  const work: InputWork = {
    ...key,
    operation: 'c2pa-video',
    identity: 'default',
    input: { type: 'local_file_path', path },
    output: null,
    params: { manifest: 'sidecar', ...params },
  };
  try {
    return await signVideo.run(work, context, services as OperationServices);
  } finally {
    await scratch.remove();
  }
}
