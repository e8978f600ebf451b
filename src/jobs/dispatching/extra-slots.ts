/** Inputs that run beyond the regular number at most, each in a worker that is started for it. */
export const MAX_EXTRA_SLOTS = 2;

/** Where every slot is taken and none was freed for this long, an extra one is offered. */
const STALL_TIMEOUT_MS = 1_000;

/**
 * Says when one more input may run than there are slots: inputs wait, and those that run have all held their slots for
 * long. Who asks gives the extra slot only to a job that has nothing running, so that inputs that take long, or never end,
 * do not hold up everybody else.
 */
export class ExtraSlots {
  readonly #offer: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** `offer` is called when an extra input may start; it calls `await` again where more inputs wait. */
  constructor(offer: () => void) {
    this.#offer = offer;
  }

  /** To be called when inputs may wait and every slot is taken. Calling it again changes nothing. */
  await(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#offer();
    }, STALL_TIMEOUT_MS);
  }

  /** To be called when a slot is freed: the others may follow. */
  freed(): void {
    this.#timer?.refresh();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
