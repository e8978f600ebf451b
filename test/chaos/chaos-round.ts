import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobResultResponse } from '#contract/job.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import type { ChaosBucket } from './chaos-bucket.ts';
import { listJobs, submitJob, submitUntilAcknowledged } from './chaos-client.ts';
import type { ChaosCounts } from './chaos-counts.ts';
import type { ChaosJob } from './chaos-jobs.ts';
import { type ChaosNode, processesOf, startNode } from './chaos-node.ts';
import { localOutput } from './chaos-sources.ts';
import type { KillPoint } from './kill-point.ts';
import { leftoversIn } from './leftovers.ts';
import { killTree } from './process-tree.ts';

const LOOK_INTERVAL_MS = 40;
/** What a killed service leaves ends by itself, but not in no time. */
const ORPHANS_END_MS = 10_000;

/** When the service is killed in a round. */
export type KillPlan =
  | { readonly kind: 'moment'; readonly afterMs: number; readonly takesWorkersAlong: boolean }
  | { readonly kind: 'point'; readonly point: KillPoint };

/** What a round is given. */
export interface RoundPlan {
  readonly jobs: readonly ChaosJob[];
  readonly kill: KillPlan;
  /** Kills the service once more, so long after it was started again. */
  readonly killAgainAfterMs: number | null;
}

/** What all rounds of a run share. */
export interface ChaosPlace {
  /** The one that is killed. */
  readonly node: ChaosNode;
  /** They share its jobs and outputs, and are started when it has been killed. */
  readonly otherNodes: readonly ChaosNode[];
  readonly bucket: ChaosBucket | null;
  readonly counts: ChaosCounts;
  /** Every output path that a result told of. */
  readonly delivered: Set<string>;
  /** Every job that was acknowledged. */
  readonly jobIds: Set<string>;
}

/** Kills the service while it has jobs, starts it again, and rejects unless everything comes to its right end. */
export async function runRound(place: ChaosPlace, plan: RoundPlan): Promise<void> {
  const acknowledged = await runAndKill(place, plan);
  await using nodes = new AsyncDisposableStack();
  for (const other of place.otherNodes) nodes.use(await startNode(other));
  if (plan.killAgainAfterMs !== null) await killAgain(place, plan.killAgainAfterMs);
  const service = nodes.use(await startNode(place.node));
  const jobIds = await acknowledgeAll(place, service.base, plan.jobs, acknowledged);
  for (const job of plan.jobs) await checkJob(place, job, await service.waitFor(jobIds.get(job) ?? ''));
  assert.deepEqual(await listJobs(service.base), place.jobIds, 'one job for each that was asked for');
  await nodes.disposeAsync();
  await checkNothingLeft(place);
}

/** Starts the service, sends the jobs, and kills it. Returns what was acknowledged. */
async function runAndKill(place: ChaosPlace, { jobs, kill }: RoundPlan): Promise<Map<ChaosJob, string>> {
  const service = await startNode(place.node, kill.kind === 'point' ? kill.point : null);
  const acknowledged = new Map<ChaosJob, string>();
  const sending = jobs.map(async (job) => {
    const jobId = await submitJob(service.base, job);
    if (jobId !== null) acknowledged.set(job, jobId);
  });
  if (kill.kind === 'moment') await killAtMoment(place, service, kill);
  else await untilKilled(place, service, kill.point, Promise.all(sending));
  await Promise.all(sending);
  return acknowledged;
}

async function killAtMoment(
  { counts }: ChaosPlace,
  service: RunningService,
  { afterMs, takesWorkersAlong }: Extract<KillPlan, { kind: 'moment' }>,
): Promise<void> {
  await sleep(afterMs);
  if (takesWorkersAlong) killTree(service.pid);
  else process.kill(service.pid, 'SIGKILL');
  await service.ended;
  counts.add('killed at a random moment');
}

/** An input may not come to the point, as when another kill came first in its worker; then the service is killed at rest. */
async function untilKilled(
  { counts }: ChaosPlace,
  service: RunningService,
  { operation, moment }: KillPoint,
  sent: Promise<unknown>,
): Promise<void> {
  let isKilled = false;
  void service.ended.then(() => {
    isKilled = true;
  });
  await Promise.race([sent, service.ended]);
  while (!isKilled && (await hasUnendedJobs(service))) await sleep(LOOK_INTERVAL_MS);
  counts.add(isKilled ? `killed at ${operation}: ${moment}` : 'killed at rest, as its point was not reached');
  if (!isKilled) process.kill(service.pid, 'SIGKILL');
  await service.ended;
}

async function hasUnendedJobs(service: RunningService): Promise<boolean> {
  for (const status of ['queued', 'running']) {
    const answer = await fetch(`${service.base}/v2/jobs?status=${status}&limit=1`).catch(() => null);
    const body = (await answer?.json().catch(() => null)) as { jobs: unknown[] } | null | undefined;
    // Nobody answers any more, so it is being killed.
    if (body === null || body === undefined || body.jobs.length > 0) return true;
  }
  return false;
}

/** Kills the service while it starts, or shortly after. */
async function killAgain(place: ChaosPlace, afterMs: number): Promise<void> {
  const spawned = Promise.withResolvers<number>();
  const starting = startNode(place.node, null, spawned.resolve);
  const pid = await spawned.promise;
  await sleep(afterMs);
  killTree(pid);
  const service = await starting.catch(() => null);
  await service?.ended;
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
    counts.add(before === undefined ? 'jobs sent again, as nobody had answered' : 'jobs acknowledged before the kill');
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

async function checkNothingLeft({ node, otherNodes, bucket, delivered }: ChaosPlace): Promise<void> {
  const left = [...[node, ...otherNodes].flatMap(({ home }) => leftoversIn(home, delivered))];
  assert.deepEqual([...left, ...((await bucket?.leftovers(delivered)) ?? [])], [], 'left behind');
  const deadline = Date.now() + ORPHANS_END_MS;
  while (processesOf(node).length > 0) {
    assert.ok(Date.now() < deadline, `processes ${processesOf(node)} outlive their service`);
    await sleep(LOOK_INTERVAL_MS);
  }
}
