import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type JobReport, phaseDurations, type RunReport } from './run-report.ts';

/** Metrics, and traces where a collector is configured. */
export class Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;

  /** `callers` are the names of those who may use the service. */
  constructor(stateNow: () => Promise<CurrentState>, tracing: Tracing | null, callers: readonly string[] = []) {
    this.metrics = new Metrics(stateNow, callers);
    this.tracing = tracing;
  }

  runEnded(report: RunReport): void {
    this.metrics.runEnded(report);
    this.tracing?.runEnded(report);
  }

  jobFinished(report: JobReport): void {
    this.metrics.jobFinished(report);
    this.tracing?.jobFinished(report);
  }
}

/**
 * Follows a request over its job to every run of its inputs. The spans of jobs and inputs are made when they end, by
 * whichever node ends them, from what the store keeps: so a trace survives restarts and moves between nodes.
 */
export interface Tracing {
  startRequest(request: IncomingRequest): RequestSpan;
  /** Records the end of a run. A report without a `traceParent` is of a job that is not traced. */
  runEnded(report: RunReport): void;
  jobFinished(report: JobReport): void;
  /** Exports what is left, within a bound. Never rejects. */
  close(): Promise<void>;
}

export interface IncomingRequest {
  readonly method: string;
  /** The pattern of the path, such as `/v2/jobs/:id`. */
  readonly route: string;
  /** The `traceparent` header that the client sent. */
  readonly traceParent: string | undefined;
}

export interface RequestSpan {
  /** The W3C `traceparent` for what this request brings about. */
  readonly traceParent: string;
  end(status: number): void;
}

/** Bounds in seconds: from a small file on a fast disk to a long movie over a network. */
const WORK_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
/** Bounds in seconds: from a key in memory to an object store that stalls. */
const CALL_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
/** Bounds in seconds: from a look-up to a synchronous wait. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120];

/** The state that is read for each request of the metrics. Counts from the store are of all nodes together. */
export interface CurrentState {
  /** Inputs by state; those that have ended are counted as they end. */
  readonly inputs: Readonly<Record<'queued' | 'reserved' | 'running', number>>;
  /** The age of the oldest waiting input, in seconds; 0 where none waits. */
  readonly oldestWaitSeconds: number;
  readonly callbacksWaiting: number;
  /** Of this node. */
  readonly runningHere: number;
  readonly workerProcesses: number;
}

const UNKNOWN: CurrentState = {
  inputs: { queued: Number.NaN, reserved: Number.NaN, running: Number.NaN },
  oldestWaitSeconds: Number.NaN,
  callbacksWaiting: Number.NaN,
  runningHere: Number.NaN,
  workerProcesses: Number.NaN,
};

const PREFIX = 'attestream_';

/** Everything the service measures, as Prometheus reads it. Labels are closed sets: nothing of a request becomes one. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #requests = this.#histogram('http_request_duration_seconds', 'Requests that were answered.', {
    labelNames: ['method', 'route', 'status'],
    buckets: REQUEST_SECONDS,
  });
  readonly #submitted = this.#counter('jobs_submitted_total', 'Jobs that were accepted.', ['operation', 'form']);
  readonly #jobs = this.#counter('jobs_ended_total', 'Jobs that have ended.', ['operation', 'status']);
  readonly #inputs = this.#counter('input_runs_total', 'Runs of inputs that have ended.', ['operation', 'end']);
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
  readonly #calls = this.#histogram('call_duration_seconds', 'Calls of signers and object stores by workers.', {
    labelNames: ['call'],
    buckets: CALL_SECONDS,
  });
  /** Apart from the others, for not everybody who may read those may know who else uses the service. */
  readonly #ofCallers = new Registry();
  readonly #submittedBy = this.#callerCounter('caller_jobs_submitted_total', 'Jobs that were accepted of a caller.', [
    'operation',
  ]);
  readonly #jobsOf = this.#callerCounter('caller_jobs_ended_total', 'Jobs of a caller that have ended.', ['status']);
  readonly #callers: ReadonlySet<string>;
  readonly #callbacks = this.#counter('callback_attempts_total', 'Callbacks that were sent.', ['outcome']);

  readonly #unfinished = this.#gauge('inputs', 'Inputs that have not ended, of all nodes.', ['state']);
  readonly #oldest = this.#gauge('queue_oldest_seconds', 'How long the input waits that waits longest.');
  readonly #callbacksWaiting = this.#gauge('callbacks_waiting', 'Callbacks to be sent, of all nodes.');
  readonly #running = this.#gauge('node_inputs_running', 'Inputs that run on this node.');
  readonly #processes = this.#gauge('node_worker_processes', 'Worker processes of this node.');
  readonly #reachable = this.#gauge('store_reachable', 'Whether the job store answered just now: 1 or 0.');
  readonly #stateNow: () => Promise<CurrentState>;

  /**
   * `stateNow` may reject: what it tells is not a number while the store cannot be reached. `callers` are the names that
   * are known; jobs of others are counted together.
   */
  constructor(stateNow: () => Promise<CurrentState>, callers: readonly string[] = []) {
    this.#stateNow = stateNow;
    this.#callers = new Set(callers);
    collectDefaultMetrics({ register: this.#registry });
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
    for (const [call, durations] of Object.entries(calls)) {
      for (const ms of durations) this.#calls.observe({ call }, ms / 1000);
    }
  }

  callbackSent(outcome: 'delivered' | 'failed' | 'given_up'): void {
    this.#callbacks.inc({ outcome });
  }

  /** The type of what `render` resolves with. */
  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Renders everything in the text format of Prometheus; what is counted of single callers only where that is asked for. */
  async render({ ofCallers = true } = {}): Promise<string> {
    this.#showState(await this.#stateNow().catch(() => null));
    const metrics = await this.#registry.metrics();
    return ofCallers ? `${metrics}\n${await this.#ofCallers.metrics()}` : metrics;
  }

  /** Names that are no longer configured share a label, so that labels stay few. */
  #callerLabel(caller: string): string {
    return this.#callers.has(caller) ? caller : 'other';
  }

  #showState(state: CurrentState | null): void {
    const { inputs, oldestWaitSeconds, callbacksWaiting, runningHere, workerProcesses } = state ?? UNKNOWN;
    for (const [name, count] of Object.entries(inputs)) this.#unfinished.set({ state: name }, count);
    this.#oldest.set(oldestWaitSeconds);
    this.#callbacksWaiting.set(callbacksWaiting);
    this.#running.set(runningHere);
    this.#processes.set(workerProcesses);
    this.#reachable.set(state === null ? 0 : 1);
  }

  #counter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.#registry] });
  }

  #callerCounter<Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label | 'caller'> {
    return new Counter({
      name: PREFIX + name,
      help,
      labelNames: ['caller', ...labelNames],
      registers: [this.#ofCallers],
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
