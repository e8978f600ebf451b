import type { RunEnd } from '../input-runs.ts';
import type { Persistence } from '../persistence.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { HeldInput } from './held-inputs.ts';
import type { TakenDelivery } from './take-deliveries.ts';

/** Ends that share a transaction. */
const MAX_TOGETHER = 64;
/** Transactions at once: while some are under way, what ends meanwhile is gathered for the next. */
const MAX_AT_ONCE = 2;
/** Where no notice comes, what waits is looked for so often. */
const POLL_INTERVAL_MS = 2_000;

/** The end of an input that ran to it. */
export type EndedRun = RunEnd & { readonly type: 'ended' };

/** An input that has ended, to be recorded. */
export interface EndedInput {
  readonly input: HeldInput;
  readonly end: EndedRun;
}

/** What an exchange came to; the records are in the order of the ends. */
export interface Exchanged {
  readonly taken: readonly TakenDelivery[];
  readonly recorded: readonly InputEnd[];
}

export interface InputExchangeOptions {
  readonly persistence: Persistence;
  /** How many inputs could be begun now, while so many are asked for already. */
  room(asked: number): number;
  /** Takes up to so many inputs and records these ends, in one transaction. */
  exchange(ended: readonly EndedInput[], count: number): Promise<Exchanged>;
  begin(taken: TakenDelivery): void;
}

interface Waiting extends EndedInput {
  readonly recorded: PromiseWithResolvers<InputEnd | undefined>;
}

/** Has the database record what has ended and hand out what is next, both in the same transactions, as few as will do. */
export class InputExchange {
  readonly #options: InputExchangeOptions;
  readonly #ended: Waiting[] = [];
  readonly #polling: NodeJS.Timeout;
  readonly #work = new Set<Promise<void>>();
  #asked = 0;
  #mayWait = true;

  constructor(options: InputExchangeOptions) {
    this.#options = options;
    this.#polling = setInterval(() => this.wake(), POLL_INTERVAL_MS).unref();
  }

  /** Something may wait, or there is room again: looks at once. */
  wake(): void {
    this.#mayWait = true;
    this.#exchangeWhatMay();
  }

  /** Records how an input ended, whose worker is free for the next one; undefined where that could not be. */
  record(input: HeldInput, end: EndedRun): Promise<InputEnd | undefined> {
    const recorded = Promise.withResolvers<InputEnd | undefined>();
    this.#ended.push({ input, end, recorded });
    this.#exchangeWhatMay();
    return recorded.promise;
  }

  /** Settles when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  /** To be called when it is settled, and there is no more room. */
  close(): void {
    clearInterval(this.#polling);
  }

  #exchangeWhatMay(): void {
    while (this.#work.size < MAX_AT_ONCE) {
      const room = this.#options.room(this.#asked);
      if (this.#ended.length === 0 && !(this.#mayWait && room > 0)) return;
      const work = this.#exchange(this.#ended.splice(0, MAX_TOGETHER), room).finally(() => {
        this.#work.delete(work);
        this.#exchangeWhatMay();
      });
      this.#work.add(work);
    }
  }

  async #exchange(ended: readonly Waiting[], room: number): Promise<void> {
    this.#asked += room;
    if (room > 0) this.#mayWait = false;
    const { taken, recorded } = await this.#write(ended, room);
    this.#asked -= room;
    // Where as many came as were asked for, there may be more.
    if (room > 0 && taken.length === room) this.#mayWait = true;
    for (const [index, waiting] of ended.entries()) waiting.recorded.resolve(recorded[index]);
    for (const delivery of taken) this.#options.begin(delivery);
  }

  /** What cannot be written for one of several is written for each alone. */
  async #write(
    ended: readonly Waiting[],
    room: number,
  ): Promise<{ taken: Exchanged['taken']; recorded: (InputEnd | undefined)[] }> {
    const { persistence, exchange } = this.#options;
    const done = await persistence.write(() => exchange(ended, room));
    if (done !== undefined) return { taken: done.taken, recorded: [...done.recorded] };
    const recorded: (InputEnd | undefined)[] = [];
    if (ended.length > 1) {
      for (const one of ended) recorded.push((await persistence.write(() => exchange([one], 0)))?.recorded[0]);
    }
    return { taken: [], recorded };
  }
}
