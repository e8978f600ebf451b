import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeIdentity } from '../../bench/identity.ts';
import { startPostgres } from '../postgres/postgres-server.ts';
import { openChaosBucket } from './chaos-bucket.ts';
import { listJobs } from './chaos-client.ts';
import { ChaosCounts } from './chaos-counts.ts';
import { chooseJobs } from './chaos-jobs.ts';
import { type ChaosNode, startNode } from './chaos-node.ts';
import { type ChaosPlace, type KillPlan, type RoundPlan, runRound } from './chaos-round.ts';
import { type ChaosOperation, makeChaosOperations } from './chaos-sources.ts';
import { learnKillPoints } from './learn-kill-points.ts';
import { serveMedia } from './media-server.ts';
import { SeededRandom } from './seeded-random.ts';

/** A random moment lies within so long after the first job was sent: some jobs have ended by then, some have not begun. */
const LATEST_KILL_MS = 2500;
const LATEST_SECOND_KILL_MS = 1500;

export interface ChaosOptions {
  readonly rounds: number;
  readonly engine: 'embedded' | 'postgres';
  /** Outputs go to S3 too. */
  readonly withS3: boolean;
  /** Decides everything that is left to chance, but for when the system gets round to what. */
  readonly seed: number;
  /** The first round; those before it are left out. */
  readonly from?: number;
  readonly onRound?: (round: number) => void;
}

/**
 * Runs rounds one after the other against one data directory; with PostgreSQL, another node takes over.
 * Rejects with the first thing that is wrong.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosCounts> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-chaos-'));
  const tearDown: (() => Promise<void>)[] = [];
  try {
    const media = join(folder, 'media');
    mkdirSync(media);
    const server = await serveMedia(media);
    tearDown.push(() => server.close());
    const operations = await makeChaosOperations(media, server.base);
    const place = await openPlace(folder, options, tearDown);
    const points = await learnPoints(place, operations);
    for (let round = options.from ?? 0; round < options.rounds; round += 1) {
      options.onRound?.(round);
      await runRound(place, planRound(round, options, { operations, points, place })).catch((cause) => {
        throw new Error(`round ${round} of seed ${options.seed} went wrong; its service was in ${folder}`, { cause });
      });
      place.counts.add('rounds');
    }
    rmSync(folder, { recursive: true });
    return place.counts;
  } finally {
    for (const step of tearDown.reverse()) await step();
  }
}

type Points = Awaited<ReturnType<typeof learnKillPoints>>;

/** Every second round kills at a random moment, the others at the points of all operations in turn. */
function planRound(
  round: number,
  { seed }: ChaosOptions,
  { operations, points, place }: { operations: readonly ChaosOperation[]; points: Points; place: ChaosPlace },
): RoundPlan {
  const random = new SeededRandom(seed, round);
  const { operation, moment } = turnOf(points, seed, Math.floor(round / 2));
  const kill: KillPlan =
    round % 2 === 0
      ? { kind: 'moment', afterMs: random.between(0, LATEST_KILL_MS), takesWorkersAlong: random.chance(0.5) }
      : { kind: 'point', point: { operation, moment, nth: 1, takesWorkerAlong: random.chance(0.5) } };
  const wanted = operations.find(({ name }) => name === operation);
  assert(wanted !== undefined);
  return {
    kill,
    killAgainAfterMs: random.chance(0.3) ? random.between(0, LATEST_SECOND_KILL_MS) : null,
    jobs: chooseJobs(random, { round, operations, wanted, bucket: place.bucket?.name ?? null }),
  };
}

function turnOf(points: Points, seed: number, turn: number): Points[number] {
  const point = new SeededRandom(seed).shuffled(points)[turn % points.length];
  assert(point !== undefined, 'inputs come to points');
  return point;
}

async function learnPoints(place: ChaosPlace, operations: readonly ChaosOperation[]): Promise<Points> {
  const service = await startNode(place.node);
  try {
    const points = await learnKillPoints(service, operations);
    for (const jobId of await listJobs(service.base)) place.jobIds.add(jobId);
    place.delivered.add(join(place.node.home, 'output', 'learning'));
    return points;
  } finally {
    await service.stop();
  }
}

async function openPlace(
  folder: string,
  options: ChaosOptions,
  tearDown: (() => Promise<void>)[],
): Promise<ChaosPlace> {
  const identity = makeIdentity(join(folder, 'identity'));
  const bucket = options.withS3 ? await openChaosBucket() : null;
  if (bucket !== null) tearDown.push(() => bucket.close());
  const settings: Record<string, string> = {
    SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(folder, 'killed', 'output'),
    SERVICE__SIGNING__CERTIFICATE_PATH: identity.certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: identity.keyPath,
    ...bucket?.settings,
  };
  if (options.engine === 'postgres') {
    const server = await startPostgres({ after: (step) => void tearDown.push(step) });
    settings['SERVICE__JOBS__DATABASE_URL'] = await server.createDatabase();
  }
  const nodeAt = (name: string): ChaosNode => ({ id: randomUUID(), home: join(folder, name), settings });
  return {
    node: nodeAt('killed'),
    otherNodes: options.engine === 'postgres' ? [nodeAt('other')] : [],
    bucket,
    counts: new ChaosCounts(),
    delivered: new Set(),
    jobIds: new Set(),
  };
}
