import type { ActionName, ActionRunner, AnswerOf, GivenTo } from './actions.ts';

/**
 * What is known of jobs and inputs, durably. A promise settles when what it did is on the disk, and rejects with an
 * AppError where the store cannot be reached; then nothing of it was done.
 *
 * Glossary. A *claim* gives a queued input to one process, which starts it at once or has it *reserved* first; the
 * attempt tells claims of the same input apart. Whoever holds a claim ends it in one of three ways: *finish* (there is
 * a result), *requeue* (stopped for no fault of the input) or *record process end* (the process working on it ended).
 * All three are refused as *late* where the claim is not the last one.
 */
export class JobStore {
  readonly #runner: ActionRunner;
  readonly #hurry: boolean;

  constructor(runner: ActionRunner, hurry = true) {
    this.#runner = runner;
    this.#hurry = hurry;
  }

  /** The same store, for writes that nobody waits for: they may wait a little for others to share their commit. */
  unhurried(): JobStore {
    return new JobStore(this.#runner, false);
  }

  readonly cancelJob = this.#action('cancelJob');
  readonly cancelledAmong = this.#action('cancelledAmong');
  readonly claimCallbacks = this.#action('claimCallbacks');
  readonly claimDestination = this.#action('claimDestination');
  readonly claimInputs = this.#action('claimInputs');
  readonly countQueued = this.#action('countQueued');
  readonly currentAmong = this.#action('currentAmong');
  readonly delayCallback = this.#action('delayCallback');
  readonly endCallback = this.#action('endCallback');
  readonly endedAmong = this.#action('endedAmong');
  readonly endedInputs = this.#action('endedInputs');
  readonly entriesOf = this.#action('entriesOf');
  readonly findJob = this.#action('findJob');
  readonly jobsOfSameCallers = this.#action('jobsOfSameCallers');
  readonly finishInput = this.#action('finishInput');
  readonly forgiveServiceEnd = this.#action('forgiveServiceEnd');
  readonly listJobs = this.#action('listJobs');
  readonly noteProgress = this.#action('noteProgress');
  readonly placesOfJob = this.#action('placesOfJob');
  /** Rejects where the store cannot be written. */
  readonly probeWrite = this.#action('probeWrite');
  readonly queueState = this.#action('queueState');
  readonly recallJob = this.#action('recallJob');
  readonly recordProcessEnd = this.#action('recordProcessEnd');
  readonly recordTransientFailure = this.#action('recordTransientFailure');
  readonly recover = this.#action('recover');
  readonly releaseDestinations = this.#action('releaseDestinations');
  readonly reportOfJob = this.#action('reportOfJob');
  readonly requestOfJob = this.#action('requestOfJob');
  readonly requeueInput = this.#action('requeueInput');
  readonly startReservedInput = this.#action('startReservedInput');
  readonly submitJob = this.#action('submitJob');
  readonly takeDelivered = this.#action('takeDelivered');
  readonly waitingJobs = this.#action('waitingJobs');

  /** Deletes the jobs that ended before a time, a few at once; resolves with how many. */
  async pruneEnded(endedBefore: Date): Promise<number> {
    let pruned = 0;
    for (;;) {
      const some = await this.#runner.run('pruneSomeJobs', [endedBefore], this.#hurry);
      if (some === 0) return pruned;
      pruned += some;
    }
  }

  /** Lets what was begun end, then lets go of the database. */
  close(): Promise<void> {
    return this.#runner.close();
  }

  #action<Name extends ActionName>(name: Name): (...given: GivenTo<Name>) => Promise<AnswerOf<Name>> {
    return (...given) => this.#runner.run(name, given, this.#hurry);
  }
}
