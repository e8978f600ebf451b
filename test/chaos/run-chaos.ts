import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeededRandom } from '../support/seeded-random.ts';
import { listJobs } from './chaos-client.ts';
import type { ChaosCounts } from './chaos-counts.ts';
import { type ChaosEnvironment, type EnvironmentOptions, openEnvironment } from './chaos-environment.ts';
import { chooseJobs } from './chaos-jobs.ts';
import { type NodeRole, startNode } from './chaos-node.ts';
import { type RoundPlan, runRound } from './chaos-round.ts';
import { type ChaosOperation, makeChaosOperations } from './chaos-sources.ts';
import type { Disturbance } from './disturbance.ts';
import { learnKillPoints } from './learn-kill-points.ts';
import { serveMedia } from './media-server.ts';

/** A random moment lies within so long after the first job was sent: some jobs have ended by then, some have not begun. */
const LATEST_KILL_MS = 2500;
const LATEST_SECOND_KILL_MS = 1500;
/** Connections are made again meanwhile, or not. */
const MAX_CRASH_MS = 4000;
/** Some partitions are over before a lease is, and some last until another node has the inputs. */
const MAX_PARTITION_MS = 20_000;

/** Disturbances that take turns, beside kills at the points of all operations. */
const DISTURBANCES = {
  embedded: ['moment', 'workers'],
  postgres: ['moment', 'workers', 'database', 'partition'],
} as const;

export interface ChaosOptions extends EnvironmentOptions {
  readonly rounds: number;
  /** Decides everything that is left to chance, but for when the system gets round to what. */
  readonly seed: number;
  /** The first round; those before it are left out. */
  readonly from?: number;
  readonly onRound?: (round: number) => void;
  /** When it is aborted, the round that is under way is the last. */
  readonly enough?: AbortSignal;
}

/**
 * Runs rounds one after the other against one data directory; with PostgreSQL, another node takes over.
 * Rejects with the first thing that is wrong.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosCounts> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-chaos-'));
  const tearDown: (() => void | Promise<void>)[] = [];
  let counts: ChaosCounts;
  try {
    const media = join(folder, 'media');
    mkdirSync(media);
    const server = await serveMedia(media);
    tearDown.push(() => server.close());
    const operations = await makeChaosOperations(media, server.base);
    const environment = await openEnvironment(folder, options, (step) => tearDown.push(step));
    const points = await learnPoints(environment, operations);
    for (let round = options.from ?? 0; round < options.rounds && !options.enough?.aborted; round += 1) {
      options.onRound?.(round);
      await runRound(environment, planRound(round, options, { operations, points, environment })).catch((cause) => {
        throw new Error(`round ${round} of seed ${options.seed} went wrong; its service was in ${folder}`, { cause });
      });
      environment.counts.add('rounds');
    }
    environment.counts.add(`kill points that were reached, of ${points.length}`, environment.reachedPoints.size);
    counts = environment.counts;
  } finally {
    for (const step of tearDown.reverse()) await step();
  }
  rmSync(folder, { recursive: true });
  return counts;
}

type Points = Awaited<ReturnType<typeof learnKillPoints>>;

interface ChaosWorld {
  readonly operations: readonly ChaosOperation[];
  readonly points: Points;
  readonly environment: ChaosEnvironment;
}

/** Every second round kills at the points of all operations in turn; the others do everything else in turn. */
function planRound(
  round: number,
  { seed, engine }: ChaosOptions,
  { operations, points, environment }: ChaosWorld,
): RoundPlan {
  const random = new SeededRandom(seed, round);
  const turn = Math.floor(round / 2);
  const point = turnOf(points, seed, turn);
  const kind = round % 2 === 0 ? turnOf(DISTURBANCES[engine], seed, turn) : 'point';
  const wanted = operations.find(({ name }) => name === point.operation);
  assert(wanted !== undefined);
  return {
    disturbance: disturbanceOf(kind, random, point),
    role: environment.cluster === null ? 'all' : random.pick(rolesFor(kind)),
    killAgainAfterMs: random.chance(0.3) ? random.between(0, LATEST_SECOND_KILL_MS) : null,
    jobs: chooseJobs(random, { round, operations, wanted, bucket: environment.bucket?.name ?? null }),
  };
}

function disturbanceOf(kind: Disturbance['kind'], random: SeededRandom, point: Points[number]): Disturbance {
  const afterMs = random.between(0, LATEST_KILL_MS);
  switch (kind) {
    case 'moment':
      return { kind, afterMs, takesWorkersAlong: random.chance(0.5) };
    case 'point':
      return { kind, point: { ...point, nth: 1, takesWorkerAlong: random.chance(0.5) } };
    case 'workers':
      return { kind, afterMs, takesProgramsAlong: random.chance(0.5) };
    case 'database':
      return { kind, afterMs, pauseMs: random.between(0, MAX_CRASH_MS) };
    case 'partition':
      return { kind, afterMs, pauseMs: random.between(0, MAX_PARTITION_MS) };
  }
}

/** A node without input workers comes to no point, and has none to lose. */
function rolesFor(kind: Disturbance['kind']): readonly NodeRole[] {
  return kind === 'point' || kind === 'workers' ? ['all', 'worker'] : ['all', 'worker', 'api'];
}

function turnOf<T>(items: readonly T[], seed: number, turn: number): T {
  const item = new SeededRandom(seed).shuffled(items)[turn % items.length];
  assert(item !== undefined, 'there is something to take turns');
  return item;
}

async function learnPoints(environment: ChaosEnvironment, operations: readonly ChaosOperation[]): Promise<Points> {
  const service = await startNode(environment.node);
  try {
    const points = await learnKillPoints(service, operations);
    for (const jobId of await listJobs(service.base)) environment.jobIds.add(jobId);
    environment.delivered.add(join(environment.outputs, 'learning'));
    return points;
  } finally {
    await service.stop();
  }
}
