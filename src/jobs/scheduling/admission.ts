import { FairCapacity } from '#concurrency/fair-capacity.ts';
import { AppError } from '#errors/app-error.ts';
import { dependencyOf } from '../dependencies.ts';
import type { NodeIdentities } from '../identities.ts';
import type { Outage } from '../outages/outages.ts';
import type { JobEngine } from '../queue/job-queue.ts';
import type { JobStore } from '../store/job-store.ts';

export interface AdmissionOptions {
  /** Bound on waiting inputs (`worker.queue_capacity`): half of them may wait for what is away. */
  readonly capacity: number;
  /** Returns the callers that half of the capacity is reserved for (`auth.tokens`). */
  readonly callers: () => readonly string[];
  readonly outages: () => readonly Outage[];
  readonly store: Pick<JobStore, 'countNeeding' | 'countQueued'>;
  readonly nodes: Pick<JobEngine, 'otherNodes'>;
  /** The identities of this node; undefined where it signs nothing. */
  readonly identities?: NodeIdentities | undefined;
}

/** A submission that is to be recorded. */
interface AskedJob {
  readonly caller: string | null;
  /** The identity that its inputs sign with; null where they sign nothing. */
  readonly identity: string | null;
  /** The dependencies of each input. */
  readonly needs: readonly (readonly string[])[];
}

/** The inputs of a submission that is being recorded. */
interface Reservation {
  readonly caller: string | null;
  readonly count: number;
}

/** Decides which submissions are recorded. Counts waiting inputs by caller, as far as this process knows. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #capacity: FairCapacity;
  readonly #pending = new Set<Reservation>();
  /** The reservations that the running recount may not see in the store; null while there is none. */
  #unseen: Set<Reservation> | null = null;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#capacity = new FairCapacity(options.capacity, options.callers);
  }

  /** The number of waiting inputs. */
  get waiting(): number {
    return this.#capacity.used;
  }

  /** The callers with waiting inputs, as far as they have names. */
  get callers(): readonly string[] {
    return this.#capacity.users.filter((caller) => caller !== null);
  }

  /**
   * Reserves capacity for the inputs of a submission, to be settled. Throws `DEPENDENCY_AWAY`, `NO_VALID_IDENTITY`, `QUEUE_FULL`,
   * `CALLER_QUEUE_FULL` where the rest is reserved for others, or `JOB_EXCEEDS_QUEUE` when the caller could never have as many waiting.
   */
  async admit({ caller, identity, needs }: AskedJob): Promise<Reservation> {
    await this.#refuseBeyondOutages(needs);
    if (identity !== null) this.#refuseEndedIdentity(identity);
    return this.#reserve({ caller, count: needs.length });
  }

  /** Ends the recording of a submission, and releases its capacity where nothing was recorded. */
  settle(reservation: Reservation, isRecorded: boolean): void {
    this.#pending.delete(reservation);
    if (isRecorded) return;
    this.#unseen?.delete(reservation);
    this.release(reservation.caller, reservation.count);
  }

  /** Adds inputs that were accepted before, even beyond the limit. */
  add(caller: string | null, count: number): void {
    this.#capacity.add(caller, count);
  }

  /** Releases capacity, never below zero: an input that another node accepted may start here before it was counted. */
  release(caller: string | null, count: number): void {
    this.#capacity.release(caller, count);
  }

  /**
   * Replaces the numbers by those of the whole database, and those of submissions that were being recorded since the query
   * began: what a caller submits side by side would else exceed the limit. Throws what the query throws.
   */
  async recount(): Promise<void> {
    const unseen = new Set(this.#pending);
    this.#unseen = unseen;
    try {
      this.#capacity.correct(await this.#options.store.countQueued());
      for (const { caller, count } of unseen) this.add(caller, count);
    } finally {
      this.#unseen = null;
    }
  }

  /** Throws `DEPENDENCY_AWAY` where inputs need what is away, and half of the queue waits for that. */
  async #refuseBeyondOutages(needs: readonly (readonly string[])[]): Promise<void> {
    const { outages, store, capacity } = this.#options;
    const away = outages().flatMap(({ allowed, dependency }) => (allowed === 0 ? [dependency] : []));
    const asking = needs.filter((each) => each.some((dependency) => away.includes(dependency)));
    const [needed] = away.filter((dependency) => asking.some((each) => each.includes(dependency)));
    if (needed === undefined) return;
    const limit = Math.floor(capacity / 2);
    const waiting = await store.countNeeding(away);
    if (waiting + asking.length <= limit) return;
    throw new AppError('DEPENDENCY_AWAY', { kind: dependencyOf(needed)?.kind ?? needed, waiting, limit });
  }

  /**
   * Throws `NO_VALID_IDENTITY` where the certificates of an identity have ended on this node, which may not have it, and on all other
   * living nodes. While no node lives that has it, or the others are not known, jobs wait for one.
   */
  #refuseEndedIdentity(identity: string): void {
    const { identities: own, nodes } = this.#options;
    const here = own?.identityOf(identity)?.notAfter;
    if (here !== undefined && isAhead(here)) return;
    const known = nodes.otherNodes();
    if (known === null) return;
    const others = known.flatMap(({ identities }) => identities.filter(({ name }) => name === identity));
    if (others.some(({ notAfter }) => notAfter === undefined || isAhead(notAfter))) return;
    const ends = [here, ...others.map((other) => other.notAfter)].filter((end) => end !== undefined);
    const notAfter = ends.sort().at(-1);
    if (notAfter !== undefined) throw new AppError('NO_VALID_IDENTITY', { identity, notAfter });
  }

  #reserve(reservation: Reservation): Reservation {
    const { caller, count } = reservation;
    const refusal = this.#capacity.tryReserve(caller, count);
    if (refusal !== null) {
      const { reason, used, free, limit } = refusal;
      if (reason === 'never-fits')
        throw new AppError('JOB_EXCEEDS_QUEUE', { asked: count, limit }, { field: 'inputs' });
      if (reason === 'caller-limit') throw new AppError('CALLER_QUEUE_FULL', { waiting: used, asked: count, free });
      throw new AppError('QUEUE_FULL', { waiting: this.waiting, asked: count, limit: this.#options.capacity });
    }
    this.#pending.add(reservation);
    this.#unseen?.add(reservation);
    return reservation;
  }
}

function isAhead(end: string): boolean {
  return Date.parse(end) > Date.now();
}
