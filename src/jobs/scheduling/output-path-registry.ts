import { basename, dirname, join, resolve } from 'node:path';
import { realPathIfItAnswers } from '#bytes/file-system-gate.ts';
import { PathSet } from '#bytes/path-overlap.ts';
import { yieldingEntries } from '#concurrency/map-concurrent.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { C2paParams } from '#contract/signing.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { comparableS3Urls } from '#s3/s3-address.ts';
import type { Log } from '#telemetry/logger.ts';
import type { InputAttempt } from '../job.ts';
import type { JobPaths, JobRequest, JobStore, LeasedInput } from '../store/job-store.ts';
import type { StoreWrites } from './store-writes.ts';

/** Paths that are resolved at once. */
const MAX_CONCURRENT_RESOLUTIONS = 32;

/** Stands for the index of an input of a job that was retried. */
const OF_RETRIED_JOB = -1;

/**
 * The output paths that the inputs of one job have reserved: no path is written twice within a request, and no source of the
 * request is written. Paths are compared with their links resolved.
 */
export class OutputPathRegistry {
  readonly #sources: PathSet<string>;
  readonly #destinations = new PathSet<number>();
  readonly #pathsOfInput = new Map<number, string[]>();
  /** The outputs of a job lie in one folder, whose links are resolved once. */
  readonly #folders = new Map<string, Promise<string>>();

  /** True when the job has a single input, so that no conflict with another one is possible. */
  readonly hasSingleInput: boolean;

  private constructor(sources: PathSet<string>, { inputs }: JobPaths) {
    this.#sources = sources;
    this.hasSingleInput = inputs.length === 1;
  }

  /**
   * Returns the registry of a job, with what its inputs have committed so far. A retry leaves the sources and outputs
   * of the jobs that it retries alone, as their other inputs do.
   */
  static async of(paths: JobPaths): Promise<OutputPathRegistry> {
    const sources = new PathSet<string>();
    const given = [paths, ...paths.retried].flatMap(({ inputs, params }) => [...sourcesOf(inputs, params)]);
    const local = given.flatMap((source) => ('path' in source ? [source.path] : []));
    for await (const [index, real] of yieldingEntries(await resolveAll(local))) sources.add(real, local[index] ?? real);
    for await (const [, source] of yieldingEntries(given)) {
      if ('url' in source) for (const path of comparableS3Urls(source.url)) sources.add(path, source.url);
    }
    const registry = new OutputPathRegistry(sources, paths);
    const earlier = paths.retried.flatMap(({ outputs }) => outputs);
    const outputs = [...paths.outputs, ...earlier.map((output) => ({ ...output, inputIndex: OF_RETRIED_JOB }))];
    const resolved = await resolveAll(outputs.map((output) => output.outputPath));
    for (const [index, { inputIndex }] of outputs.entries()) registry.#add(resolved[index] ?? '', inputIndex);
    return registry;
  }

  /** Reserves a destination for an input, or returns the refusal. An input may reserve the same one again. */
  async reserve(destination: string, inputIndex: number): Promise<AppErrorData | undefined> {
    const real = await this.#realPathOf(destination);
    for (const source of this.#sources.overlapping(real)) {
      return new AppError('OUTPUT_TOUCHES_SOURCE', { path: destination, source }, { inputIndex }).toData();
    }
    for (const owner of this.#destinations.overlapping(real)) {
      if (owner !== inputIndex) return new AppError('OUTPUT_TAKEN', { path: destination }, { inputIndex }).toData();
    }
    this.#add(real, inputIndex);
    return undefined;
  }

  /** Releases the paths of an input that committed nothing. */
  release(inputIndex: number): void {
    for (const path of this.#pathsOfInput.get(inputIndex) ?? []) this.#destinations.delete(path);
    this.#pathsOfInput.delete(inputIndex);
  }

  /**
   * Resolves the links on the way to a destination. One with the destination's own name is not resolved: it would be
   * replaced and not followed.
   */
  async #realPathOf(destination: string): Promise<string> {
    if (isAddress(destination)) return destination;
    const path = resolve(destination);
    const folder = this.#folders.get(dirname(path)) ?? comparablePath(dirname(path));
    this.#folders.set(dirname(path), folder);
    return join(await folder, basename(path));
  }

  #add(real: string, inputIndex: number): void {
    this.#destinations.add(real, inputIndex);
    const paths = this.#pathsOfInput.get(inputIndex) ?? [];
    this.#pathsOfInput.set(inputIndex, [...paths, real]);
  }
}

/** Yields everything that a request reads: its inputs, the files of its parents, and its sidecars. */
function* sourcesOf(inputs: readonly ApiInputRef[], params: unknown): Iterable<ApiInputRef> {
  yield* inputs;
  const given = (params ?? {}) as Partial<C2paParams> & VerifyParams;
  const { parent, parent_overrides: overrides = [], sidecars = [] } = given;
  yield* sidecars.map(({ source }) => source);
  for (const candidate of [parent, ...overrides.map((override) => override.parent)]) {
    if (candidate?.type === 'file') yield candidate.source;
  }
}

async function resolveAll(paths: readonly string[]): Promise<string[]> {
  const all: string[] = [];
  for (let start = 0; start < paths.length; start += MAX_CONCURRENT_RESOLUTIONS) {
    all.push(...(await Promise.all(paths.slice(start, start + MAX_CONCURRENT_RESOLUTIONS).map(comparablePath))));
  }
  return all;
}

/** Addresses of objects are compared as they are; so is a path that cannot be resolved, whose input fails elsewhere. */
async function comparablePath(path: string): Promise<string> {
  if (isAddress(path)) return path;
  return realPathIfItAnswers(path).catch(() => path);
}

function isAddress(path: string): boolean {
  return !path.startsWith('/') && /^[a-z0-9]+:\/\//i.test(path);
}

type PathStore = Pick<JobStore, 'pathsOfJob' | 'reserveOutputPath' | 'releaseOutputPaths'>;

/** The registries of the jobs that run in this process, each made when its job reserves its first output path. */
export class OutputPathRegistries {
  readonly #store: PathStore;
  readonly #writes: Pick<StoreWrites, 'write'>;
  readonly #log: Log;
  readonly #isShared: boolean;
  readonly #byJob = new Map<string, Promise<OutputPathRegistry>>();

  /** `isShared`: other nodes may have inputs of the same jobs. */
  constructor(store: PathStore, writes: Pick<StoreWrites, 'write'>, log: Log, isShared: boolean) {
    this.#store = store;
    this.#writes = writes;
    this.#log = log;
    this.#isShared = isShared;
  }

  /** Reserves a destination for an input, or returns the refusal. Waits while the store is away. Never rejects. */
  async reserve(destination: string, lease: LeasedInput): Promise<AppErrorData | undefined> {
    const { jobId, inputIndex } = lease;
    const answer = await this.#writes.write(async () => ({ refusal: await this.#reserve(destination, lease) }));
    return answer === undefined ? new AppError('INPUT_MET_BUG', { jobId, inputIndex }).toData() : answer.refusal;
  }

  async #reserve(destination: string, lease: LeasedInput): Promise<AppErrorData | undefined> {
    const { jobId, inputIndex } = lease;
    try {
      const registry = await this.#of(lease);
      const refusal = await registry.reserve(destination, inputIndex);
      if (refusal !== undefined || !this.#isShared || registry.hasSingleInput) return refusal;
      if (await this.#store.reserveOutputPath(lease, await comparablePath(destination))) return undefined;
      registry.release(inputIndex);
      return new AppError('OUTPUT_TAKEN', { path: destination }, { inputIndex }).toData();
    } catch (error) {
      // The next reservation tries again to read what the job reads and writes.
      this.#byJob.delete(jobId);
      if (!(error instanceof AppError))
        this.#log.error({ job_id: jobId, input_index: inputIndex, err: error }, 'a destination could not be checked');
      throw error;
    }
  }

  /** Releases the paths of an input that committed nothing, for other inputs. */
  async release(lease: InputAttempt): Promise<void> {
    const registry = await this.#byJob.get(lease.jobId)?.catch(() => undefined);
    registry?.release(lease.inputIndex);
    if (!this.#isShared || registry === undefined || registry.hasSingleInput) return;
    // At worst it stays reserved, and another input of the job that asks for it fails.
    await this.#store.releaseOutputPaths(lease).catch(() => undefined);
  }

  /**
   * Forgets a job of which no input runs here, and whose other inputs may run on other nodes, because this node may not
   * hear of its end. Another job is kept, because rebuilding its registry between every two inputs is slow.
   */
  suspend(jobId: string): void {
    if (this.#isShared) this.forget(jobId);
  }

  /** Forgets a job that has finished. */
  forget(jobId: string): void {
    this.#byJob.delete(jobId);
  }

  #of(lease: LeasedInput): Promise<OutputPathRegistry> {
    const { jobId, request } = lease;
    const known = this.#byJob.get(jobId);
    if (known !== undefined) return known;
    const paths =
      request === null ? this.#store.pathsOfJob(jobId) : Promise.resolve(pathsOfSingleInput(lease, request));
    const made = paths.then((found) => OutputPathRegistry.of(found));
    this.#byJob.set(jobId, made);
    return made;
  }
}

/** Returns the paths of a job from the lease of its single input. */
function pathsOfSingleInput({ inputJson }: LeasedInput, { paramsJson }: JobRequest): JobPaths {
  return { inputs: [JSON.parse(inputJson)], params: JSON.parse(paramsJson), outputs: [], retried: [] };
}
