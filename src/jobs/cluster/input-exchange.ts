import type { RunEnd } from '../dispatching/input-runs.ts';
import type { InputEnd } from '../store/end-input.ts';
import type { HeldInput } from './held-inputs.ts';
import type { TakenDelivery } from './taken-delivery.ts';

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

/** What an exchange came to. */
export interface Exchanged {
  readonly taken: readonly TakenDelivery[];
  /** In the order of the ends; undefined where one could not be recorded. */
  readonly recorded: readonly (InputEnd | undefined)[];
  /** Whether there may be more to take. */
  readonly more: boolean;
}

export interface InputExchangeOptions {
  /** How many inputs could be begun now, while so many are asked for already. */
  room(asked: number): number;
  /** Takes up to so many inputs and records these ends, together. Never rejects. */
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
    const { taken, recorded, more } = await this.#options.exchange(ended, room);
    this.#asked -= room;
    if (more) this.#mayWait = true;
    for (const [index, waiting] of ended.entries()) waiting.recorded.resolve(recorded[index]);
    for (const delivery of taken) this.#options.begin(delivery);
  }
}
