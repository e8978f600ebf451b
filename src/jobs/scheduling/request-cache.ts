import type { JobRequest } from '../store/job-store.ts';

/** A request whose JSON is longer is read again for each input, so that many large ones do not fill the memory. */
const MAX_KEPT_CHARACTERS = 256 * 1024;

/** Caches the requests of running jobs, which their inputs share. */
export class RequestCache {
  readonly #read: (jobId: string) => Promise<JobRequest | null>;
  readonly #kept = new Map<string, Promise<JobRequest | null>>();

  constructor(read: (jobId: string) => Promise<JobRequest | null>) {
    this.#read = read;
  }

  of(jobId: string): Promise<JobRequest | null> {
    const known = this.#kept.get(jobId);
    if (known !== undefined) return known;
    const reading = this.#read(jobId);
    this.#kept.set(jobId, reading);
    const forget = () => this.forget(jobId);
    reading.then((request) => (request !== null && sizeOf(request) <= MAX_KEPT_CHARACTERS) || forget(), forget);
    return reading;
  }

  /** Forgets the request of a job. To be called when the job runs no more. */
  forget(jobId: string): void {
    this.#kept.delete(jobId);
  }
}

function sizeOf({ outputJson, paramsJson }: JobRequest): number {
  return outputJson.length + paramsJson.length;
}
