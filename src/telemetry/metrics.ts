import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { raceTimeout } from '#concurrency/race-abort.ts';
import { catalogue, INPUT_REASONS, type Reason } from '#errors/catalogue.ts';
import { DEPENDENCY_KINDS, type DependencyKind } from '#errors/entry.ts';
import { type JobReport, KNOWN_CALLS, phaseDurations, type RunReport } from './run-report.ts';

/** Bounds in seconds: from a small file on a fast disk to a long movie over a network. */
const WORK_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
/** Bounds in seconds: from a key in memory to an object store that stalls. */
const CALL_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
/** Bounds in seconds: from a look-up to a synchronous wait. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120];

/** The bound on reading the state of the store, in milliseconds: Prometheus waits for 10 s. */
const STATE_TIMEOUT_MS = 5_000;

const PREFIX = 'attestream_';

/** The state that is read for each request of the metrics. Counts from the store are of all nodes together. */
export interface StoreState {
  /** True where it can be written. */
  readonly works: boolean;
  /** Inputs by state; those that have ended are counted as they end. */
  readonly inputs: Readonly<Record<'queued' | 'reserved' | 'running', number>>;
  /** The age of the oldest waiting input, in seconds; 0 where none waits. */
  readonly oldestWaitSeconds: number;
  readonly callbacksWaiting: number;
  /** Inputs that need a dependency that is away for this node, or wait for space on a disk alone; kinds without any are left out. */
  readonly inputsWaitingFor: Readonly<Partial<Record<DependencyKind, number>>>;
}

/** Counts while the store cannot be read. */
export const UNKNOWN_STATE: StoreState = {
  works: false,
  inputs: { queued: Number.NaN, reserved: Number.NaN, running: Number.NaN },
  oldestWaitSeconds: Number.NaN,
  callbacksWaiting: Number.NaN,
  inputsWaitingFor: {},
};

/** The state of this node, which is known without asking anything else. */
export interface NodeState {
  readonly inputsRunning: number;
  readonly workerProcesses: number;
  /** Inputs that may wait (`worker.queue_capacity`). */
  readonly queueCapacity: number;
  /** Kinds of dependencies that are away. */
  readonly away: readonly DependencyKind[];
  /** The end of each identity that the node signs with, in milliseconds since 1970; null for one that cannot be used now. */
  readonly identities: readonly { readonly name: string; readonly endsAtMs: number | null }[];
  /** The other nodes that share the database; null while it cannot be reached. */
  readonly otherNodes: readonly OtherNode[] | null;
}

/** Another node that shares the database. */
export interface OtherNode {
  /** Host and process. */
  readonly name: string;
  /** False where its heartbeat stopped, and it did not stop in order. */
  readonly isAlive: boolean;
  /** The last heartbeat, by the clock of the database: milliseconds since 1970. */
  readonly seenAtMs: number;
}

/** The space of the file system of a folder, in bytes. */
export interface DiskSpace {
  /** Without what the system reserves. */
  readonly freeBytes: number;
  readonly sizeBytes: number;
}

/** Everything that metrics are read from when they are asked for, and the labels that are known. */
export interface MetricsSources {
  /** May reject: what it tells is not a number while the store cannot be reached. */
  readonly store: () => Promise<StoreState>;
  readonly node: () => NodeState;
  /** Space by folder; null where it is not known. */
  readonly disks?: () => Readonly<Record<string, DiskSpace | null>>;
  readonly version: string;
  readonly operations: readonly string[];
  /** Names of those who may use the service; jobs of others are counted together. */
  readonly callers?: () => readonly string[];
}

/**
 * Everything the service measures, as Prometheus reads it. Labels are closed sets: nothing of a request becomes one. Series of
 * counters exist from the start, so that the first event is an increase.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = this.#histogram('http_request_duration_seconds', 'Requests that were answered.', {
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
  });
  readonly #submitted = this.#counter('jobs_submitted_total', 'Jobs that were accepted.', ['operation', 'form']);
  readonly #jobs = this.#counter('jobs_ended_total', 'Jobs that have ended.', ['operation', 'status']);
  readonly #inputs = this.#counter('input_runs_total', 'Runs of inputs that have ended.', ['operation', 'end']);
  readonly #failures = this.#counter(
    'input_failures_total',
    'Inputs that failed for good, by the class and the name of the reason.',
    ['class', 'reason'],
  );
  readonly #overBudget = this.#counter(
    'inputs_over_budget_total',
    'Inputs that failed because they exceeded a budget.',
    ['operation', 'budget'],
  );
  readonly #bytes = this.#counter('output_bytes_total', 'Bytes written to outputs.', ['operation']);
  readonly #runs = this.#histogram('input_run_duration_seconds', 'How long inputs ran.', {
    labelNames: ['operation'],
    buckets: WORK_SECONDS,
  });
  readonly #phases = this.#histogram('input_phase_duration_seconds', 'How long inputs took to reach a phase.', {
    labelNames: ['operation', 'phase'],
    buckets: WORK_SECONDS,
  });
  readonly #calls = this.#counter('calls_total', 'Calls of signers, time-stamp authorities and object stores.', [
    'call',
    'outcome',
  ]);
  readonly #callDurations = this.#histogram('call_duration_seconds', 'How long these calls took.', {
    labelNames: ['call'],
    buckets: CALL_SECONDS,
  });
  readonly #crashes = this.#counter('worker_crashes_total', 'Worker processes that exited by themselves.', []);
  readonly #callbacks = this.#counter('callback_attempts_total', 'Callbacks that were sent.', ['outcome']);
  /** Apart from the others, for not everybody who may read those may know who else uses the service, and on which hosts it runs. */
  readonly #forAdmins = new Registry();
  readonly #submittedBy = this.#callerCounter('caller_jobs_submitted_total', 'Jobs that were accepted of a caller.', [
    'operation',
  ]);
  readonly #jobsOf = this.#callerCounter('caller_jobs_ended_total', 'Jobs of a caller that have ended.', ['status']);

  readonly #unfinished = this.#gauge('inputs', 'Inputs that have not ended, of all nodes.', ['state']);
  readonly #waiting = this.#gauge(
    'inputs_waiting',
    'Inputs that wait for a dependency that is away for this node, or for space on a disk.',
    ['dependency'],
  );
  readonly #away = this.#gauge('dependency_away', 'Whether a dependency is away for this node: 1 or 0.', [
    'dependency',
  ]);
  readonly #oldest = this.#gauge('queue_oldest_seconds', 'How long the input waits that waits longest.');
  readonly #capacity = this.#gauge('queue_capacity', 'Inputs that may wait.');
  readonly #callbacksWaiting = this.#gauge('callbacks_waiting', 'Callbacks to be sent, of all nodes.');
  readonly #running = this.#gauge('node_inputs_running', 'Inputs that run on this node.');
  readonly #processes = this.#gauge('node_worker_processes', 'Worker processes of this node.');
  readonly #reachable = this.#gauge('store_reachable', 'Whether the job store could be read and written: 1 or 0.');
  readonly #identity = this.#gauge(
    'identity_remaining_seconds',
    'Time until the certificate of a signing identity ends; none where the node signs nothing.',
    ['identity'],
  );
  readonly #usable = this.#gauge('identity_usable', 'Whether a signing identity can be used on this node: 1 or 0.', [
    'identity',
  ]);
  readonly #free = this.#gauge('disk_free_bytes', 'Free space of the file system of a folder.', ['folder']);
  readonly #size = this.#gauge('disk_size_bytes', 'Size of the file system of a folder.', ['folder']);
  readonly #nodes = this.#gauge('nodes', 'Nodes that share the database, as this one sees them.', ['state']);
  readonly #seen = new Gauge({
    name: `${PREFIX}node_seen_timestamp_seconds`,
    help: 'Last heartbeats of the other nodes.',
    labelNames: ['node'],
    registers: [this.#forAdmins],
  });
  readonly #build = this.#gauge('build_info', 'The release that runs, and its Node.', ['version', 'node_version']);
  readonly #sources: MetricsSources;

  constructor(sources: MetricsSources) {
    this.#sources = sources;
    collectDefaultMetrics({ register: this.#registry });
    this.#build.set({ version: sources.version, node_version: process.version }, 1);
    this.#startSeries(sources);
  }

  requestAnswered(request: { method: string; route: string; status: number; ms: number }): void {
    const { method, route, status, ms } = request;
    this.#requests.observe({ method, route, status: String(status) }, ms / 1000);
  }

  /** Counts a submission. `caller` is null where no tokens are set. */
  jobSubmitted(operation: string, form: 'async' | 'sync', caller: string | null = null): void {
    this.#submitted.inc({ operation, form });
    if (caller !== null) this.#submittedBy.inc({ caller: this.#callerLabel(caller), operation });
  }

  jobFinished({ operation, status, caller }: JobReport): void {
    this.#jobs.inc({ operation, status });
    if (caller !== null) this.#jobsOf.inc({ caller: this.#callerLabel(caller), status });
  }

  runEnded({ operation, end, budget, bytesDone, startedAtMs, endedAtMs, phases, calls }: RunReport): void {
    this.#inputs.inc({ operation, end });
    if (budget !== undefined) this.#overBudget.inc({ operation, budget });
    this.#bytes.inc({ operation }, bytesDone);
    this.#runs.observe({ operation }, (endedAtMs - startedAtMs) / 1000);
    for (const { phase, ms } of phaseDurations(phases)) this.#phases.observe({ operation, phase }, ms / 1000);
    for (const [call, { succeeded, failed, durationsMs }] of Object.entries(calls)) {
      this.#calls.inc({ call, outcome: 'succeeded' }, succeeded);
      this.#calls.inc({ call, outcome: 'failed' }, failed);
      for (const ms of durationsMs) this.#callDurations.observe({ call }, ms / 1000);
    }
  }

  /** Counts an input whose failure is its result; its runs are counted by `runEnded`. */
  inputFailed(reason: Reason): void {
    this.#failures.inc({ class: catalogue[reason].class, reason });
  }

  workerCrashed(): void {
    this.#crashes.inc();
  }

  callbackSent(outcome: 'delivered' | 'failed' | 'given_up'): void {
    this.#callbacks.inc({ outcome });
  }

  /** The type of what `render` resolves with. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /**
   * Renders everything in the text format of Prometheus; what names callers and hosts for admins only. Ends within a bound also
   * where the store does not answer.
   */
  async render({ isAdmin = true } = {}): Promise<string> {
    this.#showStore(await this.#storeNow());
    this.#showNode(this.#sources.node());
    for (const [folder, space] of Object.entries(this.#sources.disks?.() ?? {})) {
      this.#free.set({ folder }, space?.freeBytes ?? Number.NaN);
      this.#size.set({ folder }, space?.sizeBytes ?? Number.NaN);
    }
    const metrics = await this.#registry.metrics();
    return isAdmin ? `${metrics}\n${await this.#forAdmins.metrics()}` : metrics;
  }

  async #storeNow(): Promise<StoreState> {
    const state = this.#sources.store().catch(() => UNKNOWN_STATE);
    return await raceTimeout(state, STATE_TIMEOUT_MS, UNKNOWN_STATE);
  }

  /** Names that are no longer configured share a label, so that labels stay few. */
  #callerLabel(caller: string): string {
    return this.#sources.callers?.().includes(caller) ? caller : OTHER_CALLER;
  }

  #showStore({ works, inputs, oldestWaitSeconds, callbacksWaiting, inputsWaitingFor }: StoreState): void {
    for (const [state, count] of Object.entries(inputs)) this.#unfinished.set({ state }, count);
    for (const dependency of DEPENDENCY_KINDS) this.#waiting.set({ dependency }, inputsWaitingFor[dependency] ?? 0);
    this.#oldest.set(oldestWaitSeconds);
    this.#callbacksWaiting.set(callbacksWaiting);
    this.#reachable.set(works ? 1 : 0);
  }

  #showNode({ inputsRunning, workerProcesses, queueCapacity, away, identities, otherNodes }: NodeState): void {
    this.#running.set(inputsRunning);
    this.#processes.set(workerProcesses);
    this.#capacity.set(queueCapacity);
    for (const dependency of DEPENDENCY_KINDS) this.#away.set({ dependency }, away.includes(dependency) ? 1 : 0);
    this.#showIdentities(identities);
    const alive = otherNodes?.filter(({ isAlive }) => isAlive).length;
    this.#nodes.set({ state: 'alive' }, alive === undefined ? Number.NaN : alive + 1);
    this.#nodes.set({ state: 'lost' }, alive === undefined ? Number.NaN : (otherNodes?.length ?? 0) - alive);
    this.#seen.reset();
    for (const { name: node, seenAtMs } of otherNodes ?? []) this.#seen.set({ node }, seenAtMs / 1000);
  }

  #showIdentities(identities: NodeState['identities']): void {
    this.#identity.reset();
    this.#usable.reset();
    for (const { name: identity, endsAtMs } of identities) {
      if (endsAtMs !== null) this.#identity.set({ identity }, (endsAtMs - Date.now()) / 1000);
      this.#usable.set({ identity }, endsAtMs !== null && endsAtMs > Date.now() ? 1 : 0);
    }
  }

  #startSeries({ operations, callers: configured = () => [] }: MetricsSources): void {
    const callers = configured();
    const operation = operations;
    start(this.#submitted, { operation, form: ['async', 'sync'] });
    start(this.#jobs, { operation, status: JOB_ENDS });
    start(this.#inputs, { operation, end: ['succeeded', 'failed', 'cancelled', 'stopped'] });
    for (const reason of INPUT_REASONS) this.#failures.inc({ class: catalogue[reason].class, reason }, 0);
    start(this.#overBudget, { operation, budget: BUDGETS });
    start(this.#bytes, { operation });
    start(this.#calls, { call: KNOWN_CALLS, outcome: ['succeeded', 'failed'] });
    start(this.#callbacks, { outcome: ['delivered', 'failed', 'given_up'] });
    for (const each of operations) this.#runs.zero({ operation: each });
    for (const call of KNOWN_CALLS) this.#callDurations.zero({ call });
    const caller = callers.length === 0 ? [] : [...callers, OTHER_CALLER];
    start(this.#submittedBy, { caller, operation });
    start(this.#jobsOf, { caller, status: JOB_ENDS });
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #callerCounter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label | 'caller'> {
    return new Counter({
      name: PREFIX + name,
      help,
      labelNames: ['caller', ...labelNames],
      registers: [this.#forAdmins],
    });
  }

  #gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #histogram<Label extends string>(
    name: string,
    help: string,
    { labelNames, buckets }: { labelNames: Label[]; buckets: number[] },
  ): Histogram<Label> {
    return new Histogram({ name: PREFIX + name, help, labelNames, buckets, registers: [this.#registry] });
  }
}

const OTHER_CALLER = 'other';
const JOB_ENDS = ['succeeded', 'failed'] as const;
const BUDGETS = ['cpu_time', 'wall_time', 'memory', 'open_files', 'output_size'];

/** Starts the series of a counter with 0, one for each combination of the values of its labels. */
function start<Label extends string>(counter: Counter<Label>, values: Record<Label, readonly string[]>): void {
  const labels = Object.entries<readonly string[]>(values);
  const combined = labels.reduce<readonly Record<string, string>[]>(
    (before, [label, each]) => before.flatMap((others) => each.map((value) => ({ ...others, [label]: value }))),
    [{}],
  );
  for (const combination of combined) counter.inc(combination as Record<Label, string>, 0);
}
