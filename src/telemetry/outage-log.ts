import type { Log } from './logger.ts';

/** The interval in which an outage that goes on is logged again, and after which one that comes and goes is said to be over. */
const INTERVAL_MS = 60_000;

/** The lines of an outage. */
export interface OutageTexts {
  readonly level: 'warn' | 'error';
  readonly begins: string;
  readonly goesOn: string;
  readonly ends: string;
}

interface State {
  isAway: boolean;
  /** True where the last line says that it is away. */
  saysAway: boolean;
  /** True where the interval has a line that says that it works again. */
  saidToWork: boolean;
  since: Date;
  fields: object;
  readonly timer: NodeJS.Timeout;
}

/**
 * Logs when something cannot be used, at once and then each minute, and when it works again: at once, but at most once a minute. So
 * the last line never says that something works which is away, also where it comes and goes each second.
 */
export class OutageLog {
  readonly #log: Log;
  readonly #texts: OutageTexts;
  readonly #states = new Map<string, State>();

  constructor(log: Log, texts: OutageTexts) {
    this.#log = log;
    this.#texts = texts;
  }

  away(dependency: string, reason: string, problem: string): void {
    const state = this.#states.get(dependency) ?? this.#begin(dependency);
    state.isAway = true;
    state.fields = { dependency, reason, problem, met_at: new Date() };
    if (state.saysAway) return;
    state.since = new Date();
    this.#sayAway(state, this.#texts.begins);
  }

  /** Takes note that something works. Where it was only probed, that is said when nobody has met a problem until the next minute. */
  works(dependency: string, { isUsed = true } = {}): void {
    const state = this.#states.get(dependency);
    if (state === undefined) return;
    state.isAway = false;
    if (state.saysAway && isUsed && !state.saidToWork) this.#sayWorks(dependency, state);
  }

  stop(): void {
    for (const { timer } of this.#states.values()) clearInterval(timer);
  }

  #begin(dependency: string): State {
    const timer = setInterval(() => this.#tellAgain(dependency, state), INTERVAL_MS).unref();
    const state: State = {
      ...{ isAway: true, saysAway: false, saidToWork: false },
      ...{ since: new Date(), fields: {}, timer },
    };
    this.#states.set(dependency, state);
    return state;
  }

  #tellAgain(dependency: string, state: State): void {
    state.saidToWork = false;
    if (state.isAway) return this.#sayAway(state, this.#texts.goesOn);
    if (state.saysAway) return this.#sayWorks(dependency, state);
    clearInterval(state.timer);
    this.#states.delete(dependency);
  }

  #sayAway(state: State, text: string): void {
    state.saysAway = true;
    this.#log[this.#texts.level]({ ...state.fields, since: state.since }, text);
  }

  #sayWorks(dependency: string, state: State): void {
    Object.assign(state, { saysAway: false, saidToWork: true });
    this.#log.info({ dependency, ms: Date.now() - state.since.getTime() }, this.#texts.ends);
  }
}
