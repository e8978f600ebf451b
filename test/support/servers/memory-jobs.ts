import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { RELEASE } from '#config/release.ts';
import { INTERFACE_VERSION } from '#contract/service.ts';
import type { JobSnapshot } from '#jobs/job.ts';
import type { JobService } from '#jobs/jobs.ts';
import { outputPathsIn, type ResultEntry } from '#jobs/result-entries.ts';

/** Jobs in memory that end when the test says so. */
export class MemoryJobs implements JobService {
  readonly submitted: Parameters<JobService['submit']>[0][] = [];
  isHealthy = true;
  /** Thrown by the next submission. */
  refusal: Error | null = null;
  /** A promise that submissions wait for before they are recorded, and the number of submissions. */
  recording: Promise<void> = Promise.resolve();
  submissions = 0;
  waiting = 0;
  /** The jobs that somebody stopped waiting for, because the wait was aborted. */
  readonly abandoned: string[] = [];
  readonly #jobs = new Map<string, JobSnapshot>();
  readonly #ends = new EventEmitter();

  async submit(submission: Parameters<JobService['submit']>[0]): ReturnType<JobService['submit']> {
    if (this.refusal !== null) throw this.refusal;
    this.submissions += 1;
    await this.recording;
    this.submitted.push(submission);
    const job_id = randomUUID();
    const timing = { queued_at: new Date().toISOString() };
    const { operation, request } = submission;
    const counts = { succeeded: 0, failed: 0, cancelled: 0 };
    const described = { operation, input_count: request.inputs.length, input_names: [], counts };
    this.#jobs.set(job_id, { job_id, status: 'queued', ...described, resultsJson: '[]', timing });
    this.#ends.emit('submitted', job_id);
    return { job_id, status: 'queued', replayed: false };
  }

  async recall(): ReturnType<JobService['recall']> {
    return null;
  }

  /** To be replaced by a test that retries jobs. */
  record: JobService['record'] = {
    findRequest: async () => null,
    findRetriedJob: async () => null,
    findFailedJobs: async () => [],
    countLeftOut: async () => 0,
  };

  async cancel(id: string): ReturnType<JobService['cancel']> {
    const job = this.#jobs.get(id);
    if (job === undefined) return null;
    const changed = job.timing.finished_at === undefined;
    if (changed) this.end(id, [{ input_index: 0, status: 'cancelled' }]);
    return { job: this.#jobs.get(id) ?? job, changed };
  }

  async list({ limit }: Parameters<JobService['list']>[0]): ReturnType<JobService['list']> {
    const jobs = [...this.#jobs.values()].reverse().map(({ resultsJson: _, ...job }) => job);
    return { jobs: jobs.slice(0, limit), more: jobs.length > limit };
  }

  /** To be replaced by a test that follows jobs. */
  events: JobService['events'] = async () => null;

  async *changes(signal: AbortSignal): ReturnType<JobService['changes']> {
    yield* [];
    await once(signal, 'abort');
  }

  async readiness(): ReturnType<JobService['readiness']> {
    return {
      ready: this.isHealthy,
      version: RELEASE.version,
      interface_version: INTERFACE_VERSION,
      role: 'all',
      identity: { kind: 'development', not_after: '2026-12-31T23:59:59.000Z' },
      store: { engine: 'sqlite', reachable: this.isHealthy },
      dependencies: [],
      queue: { waiting: 0, capacity: 1 },
      workers: { running: 0, limit: 1, processes: 0 },
    };
  }

  async find(id: string): Promise<JobSnapshot | null> {
    return this.#jobs.get(id) ?? null;
  }

  async outputPathsOf(id: string, inputIndex: number): Promise<readonly string[]> {
    const results: ResultEntry[] = JSON.parse(this.#jobs.get(id)?.resultsJson ?? '[]');
    return results.filter(({ input_index: index }) => index === inputIndex).flatMap(outputPathsIn);
  }

  async whenFinished(id: string, timeoutMs: number, signal: AbortSignal): Promise<JobSnapshot | null> {
    this.waiting += 1;
    this.#ends.emit('waiting');
    try {
      await once(this.#ends, id, { signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
      return await this.find(id);
    } catch (error) {
      if (!signal.aborted) return null;
      this.abandoned.push(id);
      throw error;
    } finally {
      this.waiting -= 1;
      this.#ends.emit('left');
    }
  }

  async healthy(): Promise<boolean> {
    return this.isHealthy;
  }

  /** Ends a job, and with it whoever waits for it. `resultsJson`: how its results are written down. */
  end(id: string, results: readonly ResultEntry[], resultsJson = JSON.stringify(results)): void {
    const job = this.#jobs.get(id);
    if (job === undefined) throw new Error(`there is no job ${id}`);
    const status = results.every((result) => result.status === 'succeeded') ? 'succeeded' : 'failed';
    this.#jobs.set(id, {
      ...job,
      status,
      resultsJson,
      timing: { ...job.timing, finished_at: new Date().toISOString() },
    });
    this.#ends.emit(id);
  }

  /** Resolves with the next job's id, once somebody waits for its end. */
  async nextWaitedFor(): Promise<string> {
    const [id] = (await once(this.#ends, 'submitted')) as [string];
    if (this.waiting === 0) await once(this.#ends, 'waiting');
    return id;
  }

  /** Resolves when nobody waits for a job any more. */
  async nobodyWaits(): Promise<void> {
    while (this.waiting > 0) await once(this.#ends, 'left');
  }
}
