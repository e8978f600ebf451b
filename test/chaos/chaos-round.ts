import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobResultResponse } from '#contract/job.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import { listJobs, submitJob, submitUntilAcknowledged } from './chaos-client.ts';
import type { ChaosJob } from './chaos-jobs.ts';
import { type NodeRole, processesOf, startNode } from './chaos-node.ts';
import type { ChaosPlace } from './chaos-place.ts';
import { localOutput } from './chaos-sources.ts';
import { type Disturbance, disturb, losePower } from './disturbance.ts';
import { leftoversIn } from './leftovers.ts';
import { killTree } from './process-tree.ts';

const LOOK_INTERVAL_MS = 40;
/** A node that is lost holds its inputs for 10 to 15 seconds; a machine with much else to do takes its time. */
const JOB_ENDS_MS = 300_000;
/** What a killed service leaves ends by itself, but not in no time. */
const ORPHANS_END_MS = 10_000;

/** What a round is given. */
export interface RoundPlan {
  readonly jobs: readonly ChaosJob[];
  /** What the disturbed node is; anything but `all` needs a cluster. */
  readonly role: NodeRole;
  readonly disturbance: Disturbance;
  /** Where the node was killed: kills it once more, so long after it was started again. */
  readonly killAgainAfterMs: number | null;
}

/** Disturbs a node while it has jobs, and rejects unless everything comes to its right end. */
export async function runRound(place: ChaosPlace, plan: RoundPlan): Promise<void> {
  await using nodes = new RoundNodes(place, plan);
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
  await disturb(place, { service: nodes.disturbed, door: nodes.door, sent: sending }, plan.disturbance);
  await nodes.startRest();
  await sending;
  const jobIds = await acknowledgeAll(place, nodes.door, plan.jobs, acknowledged);
  for (const job of plan.jobs) await checkJob(place, job, await nodes.waitFor(jobIds.get(job) ?? ''));
  assert.deepEqual(await listJobs(nodes.door), place.jobIds, 'one job for each that was asked for');
  await nodes.stop();
  await checkNothingLeft(place);
}

/** The nodes of a round. */
class RoundNodes implements AsyncDisposable {
  readonly #place: ChaosPlace;
  readonly #plan: RoundPlan;
  readonly #running = new AsyncDisposableStack();
  #disturbed: RunningService | null = null;
  #front: RunningService | null = null;
  #hasHelper = false;

  constructor(place: ChaosPlace, plan: RoundPlan) {
    this.#place = place;
    this.#plan = plan;
  }

  get disturbed(): RunningService {
    assert(this.#disturbed !== null, 'the node was started');
    return this.#disturbed;
  }

  /** Where jobs are sent to, and looked up. */
  get door(): string {
    return this.#door.base;
  }

  get #door(): RunningService {
    return this.#front ?? this.disturbed;
  }

  /** Rejects where the job does not end: then it is lost, although it is known. */
  waitFor(jobId: string): Promise<JobResultResponse> {
    const deadline = Date.now() + JOB_ENDS_MS;
    const onLook = ({ status }: JobResultResponse) =>
      assert.ok(Date.now() < deadline, `job ${jobId} is ${status} and does not end`);
    return this.#door.waitFor(jobId, { onLook });
  }

  /** Who is there from the beginning: the disturbed node, and what it needs to be of use. */
  async startFirst(): Promise<void> {
    const { node, cluster } = this.#place;
    const { role, disturbance } = this.#plan;
    if (role === 'worker') await this.#startFront();
    if (role === 'api' || disturbance.kind === 'partition') await this.#startHelper();
    const point = disturbance.kind === 'point' ? disturbance.point : null;
    this.#disturbed = this.#running.use(await startNode(node, { role, point }));
    if (cluster !== null) this.#place.counts.add(`rounds against a node with the role ${role}`);
  }

  /** After the disturbance: who is to take over, and the disturbed node again where it was killed. */
  async startRest(): Promise<void> {
    await this.#startHelper();
    const { node } = this.#place;
    const { role, disturbance, killAgainAfterMs } = this.#plan;
    if (disturbance.kind !== 'moment' && disturbance.kind !== 'point') return;
    if (killAgainAfterMs !== null) await killAgain(this.#place, role, killAgainAfterMs);
    this.#disturbed = this.#running.use(await startNode(node, { role }));
  }

  async stop(): Promise<void> {
    await this.#running.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #startFront(): Promise<void> {
    const { cluster } = this.#place;
    assert(cluster !== null, 'only in a cluster there are nodes that do nothing but jobs');
    this.#front = this.#running.use(await startNode(cluster.front, { role: 'api' }));
  }

  async #startHelper(): Promise<void> {
    const { cluster } = this.#place;
    if (cluster === null || this.#hasHelper) return;
    this.#hasHelper = true;
    this.#running.use(await startNode(cluster.helper, { role: 'worker' }));
  }
}

/** Kills the service while it starts, or shortly after. */
async function killAgain(place: ChaosPlace, role: NodeRole, afterMs: number): Promise<void> {
  const spawned = Promise.withResolvers<number>();
  const starting = startNode(place.node, { role, onSpawn: spawned.resolve });
  const pid = await spawned.promise;
  await sleep(afterMs);
  killTree(pid);
  const service = await starting.catch(() => null);
  await service?.ended;
  await losePower(place);
  place.counts.add(service === null ? 'killed again while it started' : 'killed again soon after it had started');
}

async function acknowledgeAll(
  { counts, jobIds: known }: ChaosPlace,
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

async function checkJob(place: ChaosPlace, job: ChaosJob, { status, results }: JobResultResponse): Promise<void> {
  const told = JSON.stringify(results);
  assert.equal(status, 'succeeded', `${job.operation.name}: ${told}`);
  assert.equal(results.length, job.sources.length, told);
  for (const [index, source] of job.sources.entries()) {
    const path = results.find(({ input_index: inputIndex }) => inputIndex === index)?.output_path;
    assert.ok(path !== undefined, told);
    assert.ok(path.endsWith(`/${source.leaf}`), told);
    place.delivered.add(path);
    const isRemote = path.startsWith('s3://');
    const output = isRemote ? await place.bucket?.output(path, source) : localOutput(path, source);
    assert.ok(output !== undefined);
    await source.check(output);
    place.counts.add(`valid outputs of ${job.operation.name}${isRemote ? ' in S3' : ''}`);
  }
}

async function checkNothingLeft({ node, cluster, outputs, bucket, delivered }: ChaosPlace): Promise<void> {
  const homes = [node, ...(cluster === null ? [] : [cluster.front, cluster.helper])].map(({ home }) => home);
  const left = leftoversIn({ homes, outputs }, delivered);
  assert.deepEqual([...left, ...((await bucket?.leftovers(delivered)) ?? [])], [], 'left behind');
  const deadline = Date.now() + ORPHANS_END_MS;
  while (processesOf(node).length > 0) {
    assert.ok(Date.now() < deadline, `processes ${processesOf(node)} outlive their service`);
    await sleep(LOOK_INTERVAL_MS);
  }
}
