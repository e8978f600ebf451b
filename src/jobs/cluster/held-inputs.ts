import type { InputRun } from '../dispatching/input-runs.ts';
import type { ByteProgress, Claim } from '../job.ts';
import type { ClaimedInput, JobRequest } from '../store/claim-inputs.ts';
import { type Deliveries, type Delivery, HEARTBEAT_SECONDS } from './deliveries.ts';
import { Lease, leaseClock } from './lease.ts';
import type { TakenDelivery } from './taken-delivery.ts';

/** What a node counts on is shorter than what others grant it, by more than any pause between a look and a deed. */
const LEASE_MS = HEARTBEAT_SECONDS * 1000 - 2_000;

/** What is left of a lease when a delivery begins. */
const DELIVERY_ROOM_MS = 3_000;

/** An input that was delivered to this node, and runs here. */
export interface HeldInput {
  readonly delivery: Delivery;
  readonly claim: ClaimedInput;
  /** Where its job has no other input. */
  readonly requestOfAlone: JobRequest | null;
  /** Whether something is to be erased from the record of its job when that ends. */
  readonly hasUrlSecrets: boolean;
  readonly run: InputRun;
  readonly lease: Lease;
  lost: boolean;
  /** It runs no more; only its end is not recorded yet. */
  over: boolean;
  told: ByteProgress;
}

/** The inputs that run on this node, each for as long as its lease holds. */
export class HeldInputs {
  readonly clock = leaseClock();
  readonly #deliveries: Deliveries;
  readonly #inputs = new Set<HeldInput>();

  constructor(deliveries: Deliveries) {
    this.#deliveries = deliveries;
  }

  get size(): number {
    return this.#inputs.size;
  }

  /** The jobs that inputs are held of. */
  get jobs(): readonly string[] {
    return [...new Set([...this.#inputs].map(({ claim }) => claim.jobId))];
  }

  has(jobId: string): boolean {
    return [...this.#inputs].some(({ claim }) => claim.jobId === jobId);
  }

  /** How many inputs run, of each job that has any. */
  get running(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { claim, over } of this.#inputs) {
      if (!over) counts.set(claim.jobId, (counts.get(claim.jobId) ?? 0) + 1);
    }
    return counts;
  }

  of(claim: Claim): HeldInput | undefined {
    return [...this.#inputs].find((input) => input.claim === claim);
  }

  /** The input of a job that has no other. */
  aloneOf(jobId: string): HeldInput | undefined {
    return [...this.#inputs].find(({ claim, requestOfAlone }) => claim.jobId === jobId && requestOfAlone !== null);
  }

  add(taken: TakenDelivery, claim: ClaimedInput, run: InputRun): HeldInput {
    const { delivery, requestOfAlone, hasUrlSecrets, askedAtMs } = taken;
    const lease = new Lease(this.clock, askedAtMs, LEASE_MS);
    const now = { lease, lost: false, over: false, told: run.progress };
    const input: HeldInput = { delivery, claim, requestOfAlone, hasUrlSecrets, run, ...now };
    this.#inputs.add(input);
    return input;
  }

  remove(input: HeldInput): void {
    this.#inputs.delete(input);
  }

  /** Renews the leases; resolves with the inputs whose lease is lost. */
  async renew(): Promise<readonly HeldInput[]> {
    const inputs = [...this.#inputs].filter(({ lost }) => !lost);
    const askedAtMs = this.clock();
    const lost = new Set(await this.#deliveries.renew(inputs.map(({ delivery }) => delivery)));
    for (const input of inputs) {
      input.lost = lost.has(input.delivery) && this.#inputs.has(input);
      if (!lost.has(input.delivery)) input.lease.renew(askedAtMs);
    }
    return inputs.filter((input) => input.lost);
  }

  /** Whether the output may be delivered now; waits while that is not certain. */
  async mayDeliver({ lease, run }: HeldInput): Promise<boolean> {
    const { signal } = run.abort;
    const aborted = Promise.withResolvers<void>();
    const abort = () => aborted.resolve();
    signal.addEventListener('abort', abort, { once: true });
    try {
      while (!signal.aborted && !lease.covers(DELIVERY_ROOM_MS)) await Promise.race([lease.renewed, aborted.promise]);
      return !signal.aborted;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** How far those inputs are that came further since the last time. */
  takeMoved(): (Claim & ByteProgress)[] {
    const moved = [...this.#inputs].filter(({ run, told }) => run.progress !== told);
    return moved.map((input) => {
      const { jobId, inputIndex, attempt } = input.claim;
      input.told = input.run.progress;
      return { jobId, inputIndex, attempt, ...input.told };
    });
  }
}
