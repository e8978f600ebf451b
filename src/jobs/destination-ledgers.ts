import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { DestinationLedger, resolvedPlace } from './destination-ledger.ts';
import type { Claim } from './job.ts';
import type { Log } from './log.ts';
import type { JobStore } from './store/job-store.ts';
import type { JobPlaces } from './store/unfinished-jobs.ts';

/** Where claims of destinations are kept that several nodes make for the same job. */
export type SharedDestinations = Pick<JobStore, 'claimDestination' | 'releaseDestinations'>;

/** The ledgers of the jobs that run in this process, each made when the first destination of its job is claimed. */
export class DestinationLedgers {
  readonly #placesOfJob: (jobId: string) => Promise<JobPlaces>;
  readonly #log: Log;
  readonly #shared: SharedDestinations | null;
  readonly #byJob = new Map<string, Promise<DestinationLedger>>();
  readonly #openFolders = new Map<string, string>();

  /** `shared` where other nodes may have inputs of the same jobs. */
  constructor(placesOfJob: (jobId: string) => Promise<JobPlaces>, log: Log, shared: SharedDestinations | null = null) {
    this.#placesOfJob = placesOfJob;
    this.#log = log;
    this.#shared = shared;
  }

  /** Reserves a destination for an input, or says why it cannot have it. Never rejects. */
  async claim(destination: string, claim: Claim): Promise<AppErrorData | undefined> {
    const { jobId, inputIndex } = claim;
    try {
      const ledger = await this.#of(jobId);
      const refusal = await ledger.claim(destination, inputIndex);
      if (this.#shared === null && ledger.openFolder !== undefined) this.#openFolders.set(jobId, ledger.openFolder);
      if (refusal !== undefined || this.#shared === null || ledger.isAlone) return refusal;
      if (await this.#shared.claimDestination(claim, await resolvedPlace(destination))) return undefined;
      ledger.release(inputIndex);
      return new AppError('OUTPUT_TAKEN', { path: destination }, { inputIndex }).toData();
    } catch (error) {
      // The next claim tries again to read what the job reads and writes.
      this.#byJob.delete(jobId);
      this.#log.error({ job_id: jobId, input_index: inputIndex, err: error }, 'a destination could not be checked');
      return (error instanceof AppError ? error : new AppError('INPUT_MET_BUG', { jobId, inputIndex })).toData();
    }
  }

  /** The folder that an input of a job may write a file into without claiming it, as far as one is known. */
  openFolderOf(jobId: string): string | undefined {
    return this.#openFolders.get(jobId);
  }

  /** Frees for others what an input had claimed that delivered nothing. */
  async release(claim: Claim): Promise<void> {
    const ledger = await this.#byJob.get(claim.jobId)?.catch(() => undefined);
    ledger?.release(claim.inputIndex);
    if (this.#shared === null || ledger === undefined || ledger.isAlone) return;
    // At worst it stays claimed, and another input of the job that asks for it fails.
    await this.#shared.releaseDestinations(claim).catch(() => undefined);
  }

  /** To be called when a job has ended. */
  forget(jobId: string): void {
    this.#byJob.delete(jobId);
    this.#openFolders.delete(jobId);
  }

  #of(jobId: string): Promise<DestinationLedger> {
    const known = this.#byJob.get(jobId);
    if (known !== undefined) return known;
    const made = this.#placesOfJob(jobId).then((places) => DestinationLedger.of(places));
    this.#byJob.set(jobId, made);
    return made;
  }
}
