import { type Backoff, backoffMs } from '#concurrency/retry.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import type { Log } from '#telemetry/logger.ts';
import { OutageLog, type OutageTexts } from '#telemetry/outage-log.ts';
import { causesOf, type DependencyProbes, dependencyOf, isBucket, shownIdOf } from '../dependencies.ts';

/** Pauses between probes of a dependency that is away. */
const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

const HOUR_MS = 3_600_000;

/** The pause of an input that does not fit on a disk that has room for others. */
const FIT_PAUSE_MS = 30_000;

/**
 * The least pause of an input that fits, but not beside what others have reserved. It grows with the time that it has waited: the
 * others soon end, or not for long.
 */
const MIN_RESERVED_PAUSE_MS = 1_000;

/** The pause of an input whose operation this release does not have, in which another node can take it. */
const HAND_OVER_PAUSE_MS = 2_000;

/** A dependency that is away. */
export interface Outage {
  readonly dependency: string;
  readonly error: AppErrorData;
  /** The host of its endpoint, where one is configured. */
  readonly host?: string | undefined;
  readonly sinceMs: number;
  /** Inputs that may try it at once; 0 until a probe succeeded. */
  readonly allowed: number;
  /** True where it is not probed, because it is known when it is over. */
  readonly isDeclared: boolean;
}

/** The dependency that an input waits for, and how. */
export interface Meeting {
  readonly dependency: string;
  /** It waits alone for so many milliseconds, while other inputs that need the same go on; null where it waits for a probe. */
  readonly pauseMs: number | null;
}

interface OpenOutage extends Outage {
  allowed: number;
  /** Probes and trials that failed. */
  failures: number;
  timer: NodeJS.Timeout | undefined;
}

export interface OutagesOptions {
  readonly probes: DependencyProbes;
  readonly log: Log;
  /** Hours for which an input waits for a dependency that is away (`jobs.outage_hours`). */
  readonly outageHours: number;
  /** Returns the signers that this node has; null where it may lease inputs of all. */
  readonly signers: () => readonly string[] | null;
  /** Called when inputs may be leased that were left out. */
  readonly changed: () => void;
  readonly backoff?: Backoff;
}

/**
 * What this node knows of dependencies that are away. The first inputs that meet an outage begin it. From then on the service
 * probes, and nothing is leased that needs the dependency. After a good probe one input goes first, then twice as many with each
 * that succeeds. Other nodes learn by themselves: one of them may reach what this one does not.
 */
export class Outages {
  readonly #options: OutagesOptions;
  readonly #log: OutageLog;
  readonly #open = new Map<string, OpenOutage>();
  /** Disks on which an input did not fit, and none has been written since. */
  readonly #unfit = new Set<string>();
  /** Dependencies that have not answered for a while, and may yet. */
  readonly #doubted = new Set<string>();
  #isStopped = false;

  constructor(options: OutagesOptions) {
    this.#options = options;
    this.#log = new OutageLog(options.log, TEXTS);
  }

  /** Returns the outages, in the order in which they began, until the first input succeeds. */
  list(): readonly Outage[] {
    return [...this.#open.values()].filter(({ allowed }) => allowed <= 1);
  }

  /**
   * Judges the failure of an input. Returns the dependency that it waits for; null where its failure is none of a dependency.
   * An error that may be the request's own fault is an outage where a probe fails, too. `waitedMs`: how long the input has waited.
   */
  async meet(error: AppError, needs: readonly string[], waitedMs = 0): Promise<Meeting | null> {
    const causes = causesOf(error, needs);
    const isSure = error.class === 'outage';
    // Another node may have it. Nothing on this one changes that.
    if (error.reason === 'OPERATION_UNKNOWN') return { dependency: 'operation', pauseMs: HAND_OVER_PAUSE_MS };
    if (isSure && 'neededBytes' in error.details) return await this.#meetFullDisk(error, causes, waitedMs);
    const away = causes.find((dependency) => this.#open.get(dependency)?.allowed === 0);
    const only = isSure && causes.length === 1 ? causes[0] : undefined;
    const cause = away ?? only ?? (await this.#firstFailing(causes)) ?? (isSure ? causes[0] : undefined);
    return cause === undefined ? null : this.#begin(cause, error);
  }

  /** Returns the problem of a dependency, in words; null where it can be used. One of another release cannot be probed: inputs try it. */
  async problemOf(id: string): Promise<string | null> {
    const dependency = dependencyOf(id);
    return dependency === null ? null : await this.#options.probes.problemOf(dependency);
  }

  /** Begins the outage of a folder or bucket that hangs. Returns its error. */
  hangs(id: string, problem: string): AppError {
    const { kind, name } = dependencyOf(id) ?? {};
    const error = isBucket(kind)
      ? new AppError('S3_UNREACHABLE', { address: `s3://${name}`, problem })
      : new AppError('FOLDER_HANGS', { problem });
    this.#begin(id, error);
    return error;
  }

  /** Leases nothing that needs a dependency until it is trusted again. */
  doubt(dependency: string): void {
    this.#doubted.add(dependency);
    this.#options.changed();
  }

  /** Ends a doubt. */
  trust(dependency: string): void {
    if (this.#doubted.delete(dependency)) this.#options.changed();
  }

  /** Tells whether an input waits for what is in doubt, or soon ends because of what is away. */
  holdsUp(needs: readonly string[]): boolean {
    return needs.some((dependency) => this.#doubted.has(dependency) || this.#open.get(dependency)?.allowed === 0);
  }

  /** Records that an input succeeded, and so used what it needs. */
  passed(needs: readonly string[]): void {
    for (const dependency of needs) {
      this.#unfit.delete(dependency);
      const outage = this.#open.get(dependency);
      if (outage === undefined || outage.allowed === 0) continue;
      if (outage.allowed === 1) this.#log.works(shownIdOf(dependency));
      outage.allowed *= 2;
      if (outage.allowed > MAX_TRIALS) this.#open.delete(dependency);
      this.#options.changed();
    }
  }

  /**
   * Returns the dependencies that nothing may be leased for but what has waited for too long, and how many inputs may be leased at
   * most. `running` has the needs of those that run.
   */
  bounds(running: readonly (readonly string[])[]): {
    readonly withoutDependencies: readonly string[];
    readonly overdueBefore: string;
    readonly onlySigners: readonly string[] | null;
    readonly count: number;
  } {
    const withoutDependencies = [...this.#doubted];
    let count = Number.POSITIVE_INFINITY;
    for (const { dependency, allowed } of this.#open.values()) {
      const free = allowed - running.filter((needs) => needs.includes(dependency)).length;
      if (free <= 0) withoutDependencies.push(dependency);
      else count = Math.min(count, free);
    }
    const onlySigners = this.#options.signers();
    return { withoutDependencies, overdueBefore: this.#overdueBefore.toISOString(), onlySigners, count };
  }

  /** Tells whether an input that has waited since a time (ISO 8601) has waited for too long. */
  isOverdue(since: string): boolean {
    return Date.parse(since) < this.#overdueBefore.getTime();
  }

  get #overdueBefore(): Date {
    return new Date(Date.now() - this.#options.outageHours * HOUR_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#log.stop();
    for (const { timer } of this.#open.values()) clearTimeout(timer);
  }

  /**
   * An input that does not fit waits by itself while smaller ones do. A second one that does not fit, with none that did in between,
   * begins an outage, although the file of a probe fits: it waits by itself, too, so that the next trial is another input's.
   */
  async #meetFullDisk(error: AppError, causes: readonly string[], waitedMs: number): Promise<Meeting | null> {
    const [dependency] = causes;
    if (dependency === undefined) return null;
    if (fitsAlone(error))
      return { dependency, pauseMs: Math.min(Math.max(waitedMs, MIN_RESERVED_PAUSE_MS), FIT_PAUSE_MS) };
    if ((await this.problemOf(dependency)) !== null) return this.#begin(dependency, error);
    if (this.#unfit.has(dependency)) this.#begin(dependency, error);
    this.#unfit.add(dependency);
    return { dependency, pauseMs: FIT_PAUSE_MS };
  }

  async #firstFailing(causes: readonly string[]): Promise<string | undefined> {
    for (const dependency of causes) {
      if ((await this.problemOf(dependency)) !== null) return dependency;
    }
    return undefined;
  }

  /** Begins an outage that no input met, or takes over one that an input met. It lasts until it is withdrawn. */
  declare(dependency: string, error: AppError): void {
    const known = this.#open.get(dependency);
    if (known?.isDeclared !== true) {
      clearTimeout(known?.timer);
      this.#open.set(dependency, openOutage(dependency, error, true));
    }
    this.#log.away(shownIdOf(dependency), error.reason, error.message);
  }

  /** Ends an outage. */
  withdraw(dependency: string): void {
    const outage = this.#open.get(dependency);
    if (outage === undefined) return;
    clearTimeout(outage.timer);
    this.#open.delete(dependency);
    this.#log.works(shownIdOf(dependency));
    this.#options.changed();
  }

  /** Begins an outage, or goes back to probing where it had seemed to be over. */
  #begin(dependency: string, error: AppError): Meeting {
    const known = this.#open.get(dependency);
    if (known === undefined || known.allowed > 1) {
      const named = dependencyOf(dependency);
      const host = named === null ? undefined : this.#options.probes.hostOf?.(named);
      const outage = { ...openOutage(dependency, error, false), host };
      this.#open.set(dependency, outage);
      this.#goOn(outage, error.message);
    } else if (known.allowed > 0) {
      known.allowed = 0;
      this.#goOn(known, error.message);
    }
    return { dependency, pauseMs: null };
  }

  #probeLater(outage: OpenOutage): void {
    if (this.#isStopped) return;
    outage.failures += 1;
    const { backoff = BACKOFF, probes } = this.#options;
    const dependency = dependencyOf(outage.dependency);
    const leastMs = dependency === null ? 0 : probes.minPauseMs(dependency);
    const pauseMs = Math.max(leastMs, backoffMs(outage.failures, backoff));
    outage.timer = setTimeout(() => void this.#probe(outage), pauseMs).unref();
  }

  async #probe(outage: OpenOutage): Promise<void> {
    const problem = await this.problemOf(outage.dependency);
    if (problem === null) {
      outage.allowed = 1;
      this.#log.works(shownIdOf(outage.dependency), { isUsed: false });
    } else this.#goOn(outage, problem);
    // Also where it goes on: inputs that have waited for too long fail.
    this.#options.changed();
  }

  /** Probes later, because a probe, or an input that went first, met a problem. */
  #goOn(outage: OpenOutage, problem: string): void {
    const { dependency, error, host } = outage;
    this.#log.away(shownIdOf(dependency), error.reason, host === undefined ? problem : `${host}: ${problem}`);
    this.#probeLater(outage);
  }
}

function openOutage(dependency: string, error: AppError, isDeclared: boolean): OpenOutage {
  const data = error.toData();
  return { dependency, error: data, sinceMs: Date.now(), allowed: 0, failures: 0, isDeclared, timer: undefined };
}

/** Tells whether an input did not fit only because of what others have reserved. */
function fitsAlone({ details }: AppError): boolean {
  const { neededBytes, freeBytes, reservedBytes } = details as Readonly<Record<string, number>>;
  return (reservedBytes ?? 0) > 0 && (neededBytes ?? 0) <= (freeBytes ?? 0);
}

/** Nothing is held back any more when more inputs than this could try at once. */
const MAX_TRIALS = 8;

const TEXTS: OutageTexts = {
  level: 'warn',
  begins: 'a dependency is away: inputs that need it wait, and it is probed',
  goesOn: 'a dependency is still away',
  ends: 'a dependency works again',
};
