import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '#config/config.ts';
import { signerStateDir, signsForDevelopment } from '#config/identities.ts';
import { requireOptionalPackages } from '#config/optional-packages.ts';
import type { JobResultEntry, OperationName } from '#contract/job.ts';
import type { ListedJob } from '#contract/job-list.ts';
import { validate } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { Jobs } from '#jobs/jobs.ts';
import { failedEntry } from '#jobs/result-entries.ts';
import type { OperationRequest } from '#operations/operation.ts';
import { operationNamed } from '#operations/registry.ts';
import type { Launcher } from '#processes/launcher.ts';
import { type AssertionChecker, createAssertionChecker } from '#provenance/assertion-checker.ts';
import { CheckedCredentials } from '#provenance/checked-credentials.ts';
import { Signers } from '#provenance/signers.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import type { Log } from '#telemetry/logger.ts';
import { clearStagings } from './clear-stagings.ts';
import { prepareLauncher } from './prepare-launcher.ts';
import { openRunFolder, type RunFolder, xdgFolder } from './run-folder.ts';
import { problemOfFolder } from './service-folders.ts';

export interface LocalRunOptions {
  readonly config: Config;
  readonly configFile: string;
  /** The folder that all outputs lie in; null where nothing is written. */
  readonly outputDir: string | null;
  /** Replaces outputs that exist. */
  readonly replacesOutputs: boolean;
  /** Starts a signer. */
  readonly signs: boolean;
  /** Inputs that run at once; the number of cores by default. */
  readonly parallel?: number;
  readonly log: Log;
}

/** Told what becomes of a request. */
export interface RequestFollower {
  /** Called with the results of inputs, each once, as they come. */
  readonly finished: (entries: readonly JobResultEntry[]) => void;
  readonly progress: (progress: NonNullable<ListedJob['progress']>) => void;
}

interface Parts {
  readonly config: Config;
  readonly folder: RunFolder;
  readonly jobs: Jobs;
  readonly checker: AssertionChecker;
  readonly signer: Signers | undefined;
  /** Closes all. */
  readonly started: AsyncDisposableStack;
}

/**
 * The composition root of commands: runs operations with the scheduler, workers, sandbox and signer of the service, on a store
 * of its own that goes with the run.
 */
export class LocalRun {
  /** For files that a command needs while it runs. */
  readonly folder: string;
  readonly #parts: Parts;

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.folder = parts.folder.path;
  }

  /** Starts a run. Throws an AppError where the configuration, its identity or the store cannot be used. */
  static async start(options: LocalRunOptions): Promise<LocalRun> {
    const { log } = options;
    requireOptionalPackages(options.config);
    requireWritable(options);
    await using started = new AsyncDisposableStack();
    const folder = started.adopt(await openRunFolder(log), (each) => each.remove());
    const config = localConfig(options, folder.path);
    const storeFolder = join(folder.path, 'store');
    mkdirSync(storeFolder, { mode: 0o700 });
    // A thread opens it while the signers and a worker start.
    const store = Jobs.openStore(storeFolder, log);
    started.defer(() => store.then(({ close }) => close()).catch(() => undefined));
    store.catch(() => undefined);
    const trust = started.adopt(await TrustStore.open({ settings: config.trust, log }), (each) => each.close());
    const launcher = await prepareLauncher({ config, configFile: options.configFile, log });
    launcher.hide([storeFolder]);
    const signer = options.signs ? startSigners(options, launcher, trust) : undefined;
    started.defer(() => signer?.close());
    const jobs = started.adopt(await startJobs({ config, launcher, trust, signer, store, options }), (each) =>
      each.stop(0),
    );
    const checker = started.adopt(createAssertionChecker({ launcher }), (each) => each.close());
    return new LocalRun({ config, folder, jobs, checker, signer, started: started.move() });
  }

  /** The file of the development identity, where it signs with that. */
  get developmentIdentity(): string | null {
    const identity = this.#parts.signer?.identities[0];
    return identity?.kind === 'development' ? identity.file : null;
  }

  /**
   * Runs a request, and resolves when all its inputs have finished. Inputs that the validation of a request refuses fail by
   * themselves; throws its error where it is about none of them.
   */
  async run(
    name: OperationName,
    request: OperationRequest,
    follower: RequestFollower,
    signal: AbortSignal,
  ): Promise<void> {
    const { jobs } = this.#parts;
    const { indexes, body } = await this.#admit(name, request, follower, signal);
    if (body === null) return;
    const { job_id: jobId } = await jobs.submit({ operation: name, request: body, sync: true });
    const seen = new Set<number>();
    for await (const { type, job } of (await jobs.events(jobId, signal)) ?? []) {
      if (job.progress !== undefined) follower.progress(job.progress);
      if (type === 'progress') continue;
      const entries = (JSON.parse(job.resultsJson) as JobResultEntry[]).filter(({ input_index: at }) => !seen.has(at));
      for (const { input_index: at } of entries) seen.add(at);
      follower.finished(entries.map((entry) => ({ ...entry, input_index: indexes[entry.input_index] ?? 0 })));
    }
  }

  /** Stops what runs, and removes everything but finished outputs. */
  async close(): Promise<void> {
    await this.#parts.started.disposeAsync();
  }

  /** Validates a request without the inputs that are refused; `body` is null where none is left. */
  async #admit(
    name: OperationName,
    request: OperationRequest,
    { finished }: RequestFollower,
    signal: AbortSignal,
  ): Promise<{ readonly indexes: readonly number[]; readonly body: OperationRequest | null }> {
    const operation = operationNamed(name);
    const { config, checker } = this.#parts;
    const { checkAssertions } = checker;
    let indexes = request.inputs.map((_, index) => index);
    while (indexes.length > 0) {
      const inputs = indexes.flatMap((index) => request.inputs[index] ?? []);
      try {
        const body = validate(operation.request, { ...request, inputs });
        await operation.validateRequest(body, { config, checkAssertions, signal });
        return { indexes, body };
      } catch (error) {
        const refused = refusalsIn(error);
        if (refused.size === 0) throw error;
        finished(
          [...refused].map(([at, { reason, details }]) => {
            // The field of a request means nothing to whoever named a path.
            return failedEntry(indexes[at] ?? 0, { reason, details, location: {} });
          }),
        );
        indexes = indexes.filter((_, at) => !refused.has(at));
      }
    }
    return { indexes, body: null };
  }
}

/** Returns the inputs that a validation refuses, by their index; none where it refuses the request. */
function refusalsIn(error: unknown): ReadonlyMap<number, AppError> {
  if (!(error instanceof AppError)) return new Map();
  const all = [error, ...error.others];
  if (all.some(({ location: { field } }) => field?.startsWith('inputs') !== true)) return new Map();
  return new Map(
    all.flatMap((each) => (each.location.inputIndex === undefined ? [] : [[each.location.inputIndex, each]])),
  );
}

/** Throws `FOLDER_UNUSABLE` for the folder of outputs, and for that of a development identity where one is needed. */
function requireWritable({ config, outputDir, signs }: LocalRunOptions): void {
  const folders = [
    ...(outputDir === null ? [] : [['--output', outputDir, 0o777] as const]),
    ...(signs && signsForDevelopment(config) ? [['XDG_DATA_HOME', identityFolder(), 0o700] as const] : []),
  ];
  for (const [key, folder, mode] of folders) {
    const problem = problemOfFolder(folder, mode);
    if (problem !== null) throw new AppError('FOLDER_UNUSABLE', { key, folder, problem });
  }
}

interface JobParts {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly trust: TrustStore;
  readonly signer: Signers | undefined;
  readonly store: ReturnType<typeof Jobs.openStore>;
  readonly options: LocalRunOptions;
}

async function startJobs({ config, launcher, trust, signer, store, options }: JobParts): Promise<Jobs> {
  const { log, parallel } = options;
  const jobs = new Jobs({
    ...{ config, launcher, trust, store, log },
    ...(signer && { signer }),
    ...(parallel !== undefined && { maxRunningInputs: parallel }),
    workerEntry: new URL(import.meta.resolve('./worker.ts')),
    retriesOutages: true,
    clearStagings: (attempt) => clearStagings({ config, launcher, log }, attempt),
  });
  await jobs.start();
  return jobs;
}

/**
 * Returns the configuration of a run: its own store, no callers, local inputs anywhere but in what the service and the system
 * protect, and the identity as a file that workers cannot read.
 */
function localConfig({ config, outputDir, replacesOutputs, parallel }: LocalRunOptions, folder: string): Config {
  const { jobs, worker, input_resolvers: inputs, output_sinks: outputs } = config;
  const { database_url: _, ...ownJobs } = jobs;
  const nowhere = join(folder, 'outputs');
  if (outputDir === null) mkdirSync(nowhere);
  return {
    ...config,
    auth: { tokens: [], callers: {} },
    jobs: { ...ownJobs, role: 'all', data_dir: folder, scratch_dir: join(folder, 'scratch') },
    worker: { ...worker, default_max_files_parallel: parallel ?? worker.default_max_files_parallel },
    signing: signsForDevelopment(config) ? { ...config.signing, ...developmentFiles() } : config.signing,
    input_resolvers: { ...inputs, local: {} },
    output_sinks: {
      local: { ...outputs.local, base_dir: outputDir ?? nowhere, existing: replacesOutputs ? 'replace' : 'keep' },
    },
  };
}

/** Returns the development identity as a configured one, which workers cannot read. */
function developmentFiles() {
  const folder = identityFolder();
  return { certificate_path: folder, private_key_path: folder };
}

/** Returns the folder of the development identity. A sandbox hides it only if it is there when the sandbox is made. */
function identityFolder(): string {
  return join(userFolder(), 'identity');
}

function userFolder(): string {
  return xdgFolder('XDG_DATA_HOME', '.local/share');
}

/** Starts signers, which make a development identity where there is no other. */
function startSigners({ config, log }: LocalRunOptions, launcher: Launcher, trust: TrustStore): Signers {
  const own = { ...config, jobs: { ...config.jobs, data_dir: userFolder() } };
  return new Signers({ config: own, launcher, log, trust, checked: new CheckedCredentials(signerStateDir(own)) });
}
