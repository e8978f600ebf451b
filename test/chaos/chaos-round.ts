import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobResultResponse } from '#contract/job.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import { killTree } from '../support/process-tree.ts';
import { listJobs, submitJob, submitUntilAcknowledged } from './chaos-client.ts';
import type { ChaosEnvironment } from './chaos-environment.ts';
import type { ChaosJob } from './chaos-jobs.ts';
import { type NodeRole, processesOf, startNode } from './chaos-node.ts';
import { localOutput } from './chaos-sources.ts';
import { type Disturbance, disturb, losePower } from './disturbance.ts';
import { leftoversIn } from './leftovers.ts';

const LOOK_INTERVAL_MS = 40;
/** A node that is lost holds its inputs for 10 to 15 seconds; a machine with much else to do takes its time. */
const JOB_ENDS_MS = 600_000;
/** Time in which processes that a killed service leaves behind exit by themselves. */
const ORPHANS_END_MS = 600_000;

/** The plan of a round. */
export interface RoundPlan {
  readonly jobs: readonly ChaosJob[];
  /** The role of the disturbed node; anything but `all` needs a cluster. */
  readonly role: NodeRole;
  readonly disturbance: Disturbance;
  /** Kills a node that was killed once more, after this time from its second start. */
  readonly killAgainAfterMs: number | null;
}

/** Disturbs a node while it has jobs, and rejects unless everything comes to its right end. */
export async function runRound(environment: ChaosEnvironment, plan: RoundPlan): Promise<void> {
  await using nodes = new RoundNodes(environment, plan);
  await nodes.startFirst();
  const acknowledged = new Map<ChaosJob, string>();
  const sending = Promise.all(
    plan.jobs.map(async (job) => {
      const jobId = await submitJob(nodes.door, job);
      if (jobId !== null) acknowledged.set(job, jobId);
    }),
  );
  // Told of at its await; before that it is no unhandled rejection.
  sending.catch(() => undefined);
  await disturb(environment, { service: nodes.disturbed, door: nodes.door, sent: sending }, plan.disturbance);
  await nodes.startRest();
  await sending;
  const jobIds = await acknowledgeAll(environment, nodes.door, plan.jobs, acknowledged);
  for (const job of plan.jobs) await checkJob(environment, job, await nodes.waitFor(jobIds.get(job) ?? ''));
  assert.deepEqual(await listJobs(nodes.door), environment.jobIds, 'one job for each that was asked for');
  await nodes.stop();
  await checkNothingLeft(environment);
}

/** The nodes of a round. */
class RoundNodes implements AsyncDisposable {
  readonly #environment: ChaosEnvironment;
  readonly #plan: RoundPlan;
  readonly #running = new AsyncDisposableStack();
  #disturbed: RunningService | null = null;
  #front: RunningService | null = null;
  #hasHelper = false;

  constructor(environment: ChaosEnvironment, plan: RoundPlan) {
    this.#environment = environment;
    this.#plan = plan;
  }

  get disturbed(): RunningService {
    assert(this.#disturbed !== null, 'the node was started');
    return this.#disturbed;
  }

  /** Address of the node that jobs are sent to and looked up at. */
  get door(): string {
    return this.#door.base;
  }

  get #door(): RunningService {
    return this.#front ?? this.disturbed;
  }

  /** Rejects where the job does not end: then it is lost, although it is known. */
  async waitFor(jobId: string): Promise<JobResultResponse> {
    const job = await Promise.race([this.#door.waitFor(jobId), sleep(JOB_ENDS_MS, null, { ref: false })]);
    assert.ok(job !== null, `job ${jobId} does not end`);
    return job;
  }

  /** Starts the nodes that are there from the beginning: the disturbed one, and those that it needs to be of use. */
  async startFirst(): Promise<void> {
    const { node, cluster } = this.#environment;
    const { role, disturbance } = this.#plan;
    if (role === 'worker') await this.#startFront();
    if (role === 'api' || disturbance.kind === 'partition') await this.#startHelper();
    const point = disturbance.kind === 'point' ? disturbance.point : null;
    this.#disturbed = this.#running.use(await startNode(node, { role, point }));
    if (cluster !== null) this.#environment.counts.add(`rounds against a node with the role ${role}`);
  }

  /** After the disturbance: who is to take over, and the disturbed node again where it was killed. */
  async startRest(): Promise<void> {
    await this.#startHelper();
    const { node } = this.#environment;
    const { role, disturbance, killAgainAfterMs } = this.#plan;
    if (disturbance.kind !== 'moment' && disturbance.kind !== 'point') return;
    if (killAgainAfterMs !== null) await killAgain(this.#environment, role, killAgainAfterMs);
    this.#disturbed = this.#running.use(await startNode(node, { role }));
  }

  async stop(): Promise<void> {
    await this.#running.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #startFront(): Promise<void> {
    const { cluster } = this.#environment;
    assert(cluster !== null, 'only in a cluster there are nodes that do nothing but jobs');
    this.#front = this.#running.use(await startNode(cluster.front, { role: 'api' }));
  }

  async #startHelper(): Promise<void> {
    const { cluster } = this.#environment;
    if (cluster === null || this.#hasHelper) return;
    this.#hasHelper = true;
    this.#running.use(await startNode(cluster.helper, { role: 'worker' }));
  }
}

/** Kills the service while it starts, or shortly after. */
async function killAgain(environment: ChaosEnvironment, role: NodeRole, afterMs: number): Promise<void> {
  const spawned = Promise.withResolvers<number>();
  const starting = startNode(environment.node, { role, onSpawn: spawned.resolve });
  const pid = await spawned.promise;
  await sleep(afterMs);
  killTree(pid);
  const service = await starting.catch(() => null);
  await service?.ended;
  await losePower(environment);
  environment.counts.add(service === null ? 'killed again while it started' : 'killed again soon after it had started');
}

async function acknowledgeAll(
  { counts, jobIds: known }: ChaosEnvironment,
  base: string,
  jobs: readonly ChaosJob[],
  acknowledged: ReadonlyMap<ChaosJob, string>,
): Promise<Map<ChaosJob, string>> {
  const jobIds = new Map<ChaosJob, string>();
  for (const job of jobs) {
    const before = acknowledged.get(job);
    counts.add(
      before === undefined ? 'jobs sent again, as nobody had taken them' : 'jobs acknowledged at the first time',
    );
    const jobId = await submitUntilAcknowledged(base, job);
    assert.equal(jobId, before ?? jobId, `${job.idempotencyKey} is still the job that it was`);
    jobIds.set(job, jobId);
    known.add(jobId);
  }
  return jobIds;
}

async function checkJob(
  environment: ChaosEnvironment,
  job: ChaosJob,
  { status, results }: JobResultResponse,
): Promise<void> {
  const told = JSON.stringify(results);
  assert.equal(status, 'succeeded', `${job.operation.name}: ${told}`);
  assert.equal(results.length, job.sources.length, told);
  for (const [index, source] of job.sources.entries()) {
    const path = results.find(({ input_index: inputIndex }) => inputIndex === index)?.output_path;
    assert.ok(path !== undefined, told);
    assert.ok(path.endsWith(`/${source.leaf}`), told);
    environment.delivered.add(path);
    const isRemote = path.startsWith('s3://');
    const output = isRemote ? await environment.bucket?.output(path, source) : localOutput(path, source);
    assert.ok(output !== undefined);
    await source.check(output);
    environment.counts.add(`valid outputs of ${job.operation.name}${isRemote ? ' in S3' : ''}`);
  }
}

async function checkNothingLeft({ node, cluster, outputs, bucket, delivered }: ChaosEnvironment): Promise<void> {
  const homes = [node, ...(cluster === null ? [] : [cluster.front, cluster.helper])].map(({ home }) => home);
  const left = leftoversIn({ homes, outputs }, delivered);
  assert.deepEqual([...left, ...((await bucket?.leftovers(delivered)) ?? [])], [], 'left behind');
  const deadline = Date.now() + ORPHANS_END_MS;
  while (processesOf(node).length > 0) {
    assert.ok(Date.now() < deadline, `processes ${processesOf(node)} outlive their service`);
    await sleep(LOOK_INTERVAL_MS);
  }
}
