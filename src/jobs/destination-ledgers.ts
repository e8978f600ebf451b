import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { DestinationLedger } from './destination-ledger.ts';
import type { Claim } from './job.ts';
import type { Log } from './log.ts';
import type { JobPlaces } from './store/unfinished-jobs.ts';

/** The ledgers of the jobs that run in this process, each made when the first destination of its job is claimed. */
export class DestinationLedgers {
  readonly #placesOfJob: (jobId: string) => Promise<JobPlaces>;
  readonly #log: Log;
  readonly #byJob = new Map<string, Promise<DestinationLedger>>();

  constructor(placesOfJob: (jobId: string) => Promise<JobPlaces>, log: Log) {
    this.#placesOfJob = placesOfJob;
    this.#log = log;
  }

  /** Reserves a destination for an input, or says why it cannot have it. Never rejects. */
  async claim(destination: string, { jobId, inputIndex }: Claim): Promise<AppErrorData | undefined> {
    try {
      const ledger = await this.#of(jobId);
      return await ledger.claim(destination, inputIndex);
    } catch (error) {
      // The next claim tries again to read what the job reads and writes.
      this.#byJob.delete(jobId);
      this.#log.error({ job_id: jobId, input_index: inputIndex, err: error }, 'a destination could not be checked');
      return (error instanceof AppError ? error : new AppError('INPUT_MET_BUG', { jobId, inputIndex })).toData();
    }
  }

  /** Frees for others what an input had claimed that delivered nothing. */
  async release({ jobId, inputIndex }: Claim): Promise<void> {
    const ledger = await this.#byJob.get(jobId)?.catch(() => undefined);
    ledger?.release(inputIndex);
  }

  /** To be called when a job has ended. */
  forget(jobId: string): void {
    this.#byJob.delete(jobId);
  }

  #of(jobId: string): Promise<DestinationLedger> {
    const known = this.#byJob.get(jobId);
    if (known !== undefined) return known;
    const made = this.#placesOfJob(jobId).then((places) => DestinationLedger.of(places));
    this.#byJob.set(jobId, made);
    return made;
  }
}
