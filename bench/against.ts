import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService, timeService } from './bench-context.ts';
import { measureRounds, median, progress, type Series } from './measuring.ts';
import { writeSounds, writeVideo } from './media.ts';
import { cpuMillisecondsOf } from './process-cpu.ts';
import { seconds, type Target, targetsTable } from './report.ts';

/** Limits on a change, as ratios to the version before it: of time on the clock, and of processor time. */
const MAX_WALL_RATIO = 1.05;
const MAX_CPU_RATIO = 1.1;

const SOUND_FILES = 500;
const SOUND_BYTES = 64 * 1024;
const VIDEO_BYTES = 1_200_000_000;

/** One request that both versions are given, and the number of pairs that it is measured in. */
interface Case {
  readonly name: string;
  readonly operation: 'audio' | 'video';
  readonly pairs: number;
  readonly readBack: boolean;
  readonly files: readonly string[];
}

/** Measures of one version, one of each for a round. */
interface Measures {
  readonly wall: Series;
  readonly cpu: Series;
}

/**
 * Compares this version with another checkout, in the parts that are named (`audio`, `video`): both services run at once,
 * and are given the same request in turn. Returns a Markdown table of medians, and of the medians of the ratios pair by pair.
 */
export async function compareWith(otherRoot: string, names: readonly string[], context: BenchContext): Promise<string> {
  const rows: string[] = [];
  const targets: Target[] = [];
  const cases = (await makeCases(context.folder)).filter(({ operation }) => names.includes(operation));
  for (const one of cases) {
    const [before, after] = await measureCase(one, otherRoot, context);
    const wall = ratiosOf(after.wall, before.wall);
    const cpu = ratiosOf(after.cpu, before.cpu);
    rows.push(
      row(`${one.name}: time`, before.wall, after.wall, wall),
      row(`${one.name}: CPU`, before.cpu, after.cpu, cpu),
    );
    targets.push(
      target(`${one.name}: time`, wall, MAX_WALL_RATIO),
      target(`${one.name}: processor time`, cpu, MAX_CPU_RATIO),
    );
  }
  return [
    '## Beside another version, in alternating pairs',
    ['| | before | after | ratio, pair by pair | range |', '|---|---|---|---|---|', ...rows].join('\n'),
    '### Targets',
    targetsTable(targets),
  ].join('\n\n');
}

async function makeCases(folder: string): Promise<Case[]> {
  progress('writing the media');
  const sounds = join(folder, 'sounds');
  mkdirSync(sounds);
  const video = join(folder, 'video.mp4');
  await writeVideo(video, VIDEO_BYTES);
  const many = writeSounds(sounds, SOUND_FILES, SOUND_BYTES);
  const batch = { operation: 'audio', pairs: 15, files: many } as const;
  const film = { operation: 'video', pairs: 5, files: [video] } as const;
  return [
    { ...batch, name: '500 WAV files of 64 kB, read-back off', readBack: false },
    { ...batch, name: '500 WAV files of 64 kB, read-back on', readBack: true },
    { ...film, name: '1.2 GB, read-back off', readBack: false },
    { ...film, name: '1.2 GB, read-back on', readBack: true },
  ];
}

async function measureCase(one: Case, otherRoot: string, context: BenchContext): Promise<[Measures, Measures]> {
  const { name, readBack, pairs } = one;
  const program = join(otherRoot, 'src/main.ts');
  const folder = `${one.operation}-${readBack}`;
  await using before = await startBenchService(context, `${folder}-before`, { readBack, program });
  await using after = await startBenchService(context, `${folder}-after`, { readBack });
  // The first request starts the workers and compiles what is called often: it does not count.
  for (const service of [before, after]) await timeCase(service, one);
  const cpu: Record<'before' | 'after', number[]> = { before: [], after: [] };
  const measured = async (service: RunningService, side: 'before' | 'after'): Promise<number> => {
    const startedWith = cpuMillisecondsOf(service.pid);
    const milliseconds = await timeCase(service, one);
    cpu[side].push(cpuMillisecondsOf(service.pid) - startedWith);
    return milliseconds;
  };
  progress(name);
  const wall = await measureRounds(
    [
      { name: 'before', measure: () => measured(before, 'before') },
      { name: 'after', measure: () => measured(after, 'after') },
    ],
    pairs,
  );
  return [
    { wall: wall.get('before') ?? [], cpu: cpu.before },
    { wall: wall.get('after') ?? [], cpu: cpu.after },
  ];
}

function timeCase(service: RunningService, { operation, files }: Case): Promise<number> {
  return timeService(service, operation, files, operation === 'audio' ? 'kept' : 'removed');
}

function ratiosOf(after: Series, before: Series): Series {
  return after.map((value, index) => value / (before[index] ?? Number.NaN));
}

function row(name: string, before: Series, after: Series, ratios: Series): string {
  const range = `${Math.min(...ratios).toFixed(2)} – ${Math.max(...ratios).toFixed(2)}`;
  return `| ${name} | ${seconds(median(before))} | ${seconds(median(after))} | ${median(ratios).toFixed(2)} | ${range} |`;
}

function target(name: string, ratios: Series, atMost: number): Target {
  const ratio = median(ratios);
  return {
    statement: `${name}: at most ${atMost} times`,
    measured: `${ratio.toFixed(2)} times`,
    held: ratio <= atMost,
  };
}
