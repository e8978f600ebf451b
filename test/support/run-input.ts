import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import { localFolderOpener } from '#inputs/local/local-folder.ts';
import type { InputContext, InputWork, Operation, OperationOutcome, OperationServices } from '#operations/operation.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import { createFragmentReader } from '#provenance/official-reader.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { testAuthor } from './manifests/sign-wav.ts';

const POLICY = { roots: undefined, protectedPaths: [] };
const LIMITS = { maxFiles: 100_000, maxBytes: 1e12, maxDepth: 16 };

/** The input of a job, and what its request says about it. */
type AskedInput = Pick<InputWork, 'input'> & Partial<Pick<InputWork, 'output' | 'params' | 'attempt'>>;

/** The worker that runs an input, where it is to be another one than signs without time-stamps and reads nothing back. */
interface InputWorker {
  readonly context?: Partial<Omit<InputContext, 'scratch'>>;
  readonly services?: Partial<Omit<OperationServices, 'outputs'>>;
  readonly heartbeat?: () => void;
  /** The folder of the outputs; `output` in the home by default. */
  readonly outputFolder?: string;
  /** Puts another sink in the place of the local one. */
  readonly sink?: (local: OutputSink) => OutputSink;
}

/** Runs an operation on an input of this host, as a worker does. `home` gets `data`, `scratch` and `output`. */
export async function runInput<Outcome extends OperationOutcome>(
  { name, signs, run }: Operation<Outcome>,
  { input, output = null, params, attempt = 1 }: AskedInput,
  home: string,
  { context, services, heartbeat, outputFolder = join(home, 'output'), sink = (local) => local }: InputWorker = {},
): Promise<Outcome> {
  const dataDir = join(home, 'data');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt };
  const scratch = new ScratchSpace({ dir: join(home, 'scratch'), dataDir }, key, heartbeat);
  const work: InputWork = { ...key, operation: name, identity: signs ? 'default' : null, input, output, params };
  try {
    return await run(
      work,
      {
        signal: new AbortController().signal,
        scratch,
        progress: () => undefined,
        opened: () => undefined,
        reached: () => undefined,
        reserveOutputPath: () => Promise.resolve(),
        confirmLease: () => Promise.resolve(),
        awaitSignature: (sign) => sign(),
        ...context,
      },
      {
        inputs: new InputResolver(
          { local_file_path: localFileOpener(POLICY) },
          { local_folder_path: localFolderOpener(POLICY, LIMITS) },
        ),
        outputs: sink(new LocalSink({ baseDir: outputFolder, dataDir })),
        author: testAuthor(),
        manifestDefaults: { actions: [] },
        outputChecker: null,
        fragments: createFragmentReader(),
        fragmentChecks: null,
        trust: { current: NO_TRUST_LISTS },
        ...services,
      },
    );
  } finally {
    await scratch.remove();
  }
}
