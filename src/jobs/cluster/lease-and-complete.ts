import type { Persistence, RunEnd } from '../dispatching/work-source.ts';
import type { InputEnd } from '../store/job-store.ts';
import type { MessageExchange, PostgresJobStore, ReceivedMessage } from '../store/postgres/postgres-job-store.ts';
import type { LeaseClock, LeasedMessage, RunningLease } from './leased-inputs.ts';

/** Results in one transaction. */
const MAX_RESULTS_PER_TRANSACTION = 64;
/** Transactions at the same time. Results that arrive meanwhile share the next one. */
const MAX_TRANSACTIONS = 2;
/** The interval of polling for job messages when no notification arrives, in milliseconds. */
const POLL_INTERVAL_MS = 2_000;

/** The end of a run that finished with a result. */
export type FinishedRun = RunEnd & { readonly type: 'finished' };

interface LeaseAndCompleteOptions {
  readonly store: Pick<PostgresJobStore, 'leaseAndComplete' | 'takeOver'>;
  readonly persistence: Persistence;
  readonly clock: LeaseClock;
  /** Returns the number of inputs that could start now, beside those that are requested already. */
  capacity(requested: number): number;
  /**
   * Returns the jobs of which no input may be leased now, where all requested ones may be of one job; null when nothing
   * may be leased.
   */
  excludedJobs(requested: number): Promise<readonly string[] | null>;
  start(leased: LeasedMessage): void;
}

interface PendingResult {
  readonly input: RunningLease;
  readonly end: FinishedRun;
  readonly recorded: PromiseWithResolvers<InputEnd | undefined>;
}

/** Records results and leases the next inputs, both in the same transactions, of which it needs few. */
export class LeaseAndComplete {
  readonly #options: LeaseAndCompleteOptions;
  readonly #pending: PendingResult[] = [];
  readonly #polling: NodeJS.Timeout;
  readonly #transactions = new Set<Promise<void>>();
  #requested = 0;
  #mayHaveMessages = true;

  constructor(options: LeaseAndCompleteOptions) {
    this.#options = options;
    this.#polling = setInterval(() => this.wake(), POLL_INTERVAL_MS).unref();
  }

  /** Looks for job messages at once: some may have arrived, or capacity has become free. */
  wake(): void {
    this.#mayHaveMessages = true;
    this.#startTransactions();
  }

  /** Records the result of an input, whose worker is free for another one; resolves with undefined when that failed. */
  record(input: RunningLease, end: FinishedRun): Promise<InputEnd | undefined> {
    const recorded = Promise.withResolvers<InputEnd | undefined>();
    this.#pending.push({ input, end, recorded });
    this.#startTransactions();
    return recorded.promise;
  }

  /** Resolves when no transaction is running. */
  async idle(): Promise<void> {
    while (this.#transactions.size > 0) await Promise.all(this.#transactions);
  }

  /** Stops polling. To be called when it is idle, and has no more capacity. */
  close(): void {
    clearInterval(this.#polling);
  }

  #startTransactions(): void {
    while (this.#transactions.size < MAX_TRANSACTIONS) {
      const capacity = this.#options.capacity(this.#requested);
      if (this.#pending.length === 0 && !(this.#mayHaveMessages && capacity > 0)) return;
      const results = this.#pending.splice(0, MAX_RESULTS_PER_TRANSACTION);
      const transaction = this.#exchange(results, capacity).finally(() => {
        this.#transactions.delete(transaction);
        this.#startTransactions();
      });
      this.#transactions.add(transaction);
    }
  }

  /** Records results, and leases up to `count` inputs. Records each result on its own when they fail together. Never rejects. */
  async #exchange(results: readonly PendingResult[], count: number): Promise<void> {
    this.#requested += count;
    if (count > 0) this.#mayHaveMessages = false;
    const done = await this.#write(results, count);
    if (done === undefined && results.length > 1) for (const one of results) await this.#exchange([one], 0);
    else this.#resolve(results, done);
    const leased: LeasedMessage[] = [];
    for (const one of done?.received ?? []) leased.push(...(await this.#leaseOf(one, done?.askedAtMs ?? 0)));
    this.#requested -= count;
    if (done?.more) this.#mayHaveMessages = true;
    for (const one of leased) this.#options.start(one);
  }

  #write(
    results: readonly PendingResult[],
    count: number,
  ): Promise<(MessageExchange & { readonly askedAtMs: number }) | undefined> {
    const { persistence, store, clock, excludedJobs } = this.#options;
    const completed = results.map(({ input: { lease, message }, end }) => ({ lease, message, ...end }));
    return persistence.write(async () => {
      const askedAtMs = clock();
      const excluded = count > 0 ? await excludedJobs(this.#requested) : [];
      const received = await store.leaseAndComplete(completed, excluded === null ? 0 : count, excluded ?? []);
      return { askedAtMs, ...received };
    });
  }

  #resolve(results: readonly PendingResult[], done: MessageExchange | undefined): void {
    for (const { input, recorded } of results) recorded.resolve(done && endOf(input, done));
  }

  /** Returns the lease of a received message; none when the message expired meanwhile. */
  async #leaseOf({ message, leased }: ReceivedMessage, askedAtMs: number): Promise<readonly LeasedMessage[]> {
    if (leased !== null) return [{ message, ...leased, jobFinished: false, askedAtMs }];
    const { persistence, store } = this.#options;
    const answer = await persistence.write(() => store.takeOver(message));
    if (answer === undefined || answer === null) return [];
    return [{ message, singleInputRequest: null, jobFinished: false, ...answer, askedAtMs }];
  }
}

function endOf({ lease }: RunningLease, { completed }: MessageExchange): InputEnd {
  const end = completed.find((one) => one.jobId === lease.jobId && one.inputIndex === lease.inputIndex);
  return end === undefined
    ? { input: 'late', jobFinished: false }
    : { input: 'finished', jobFinished: end.jobFinished };
}
