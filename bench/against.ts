import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService, timeService } from './bench-context.ts';
import { measureRounds, median, progress, type Series } from './measuring.ts';
import { writeSounds, writeVideo } from './media.ts';
import { cpuMillisecondsOf } from './process-cpu.ts';
import { LARGE, type PublicationShape, SMALL, writePublication } from './publication-media.ts';
import { timePublication } from './publications-part.ts';
import { seconds, type Target, targetsTable } from './report.ts';
import { signForVerification, timeVerification } from './verify-part.ts';

/** Limits on a change, as ratios to the version before it: of time on the clock, and of processor time. */
const MAX_WALL_RATIO = 1.05;
const MAX_CPU_RATIO = 1.1;

const SOUND_FILES = 500;
const SOUND_BYTES = 64 * 1024;
const VIDEO_BYTES = 1_200_000_000;

/** One request that both versions are given, and the number of pairs that it is measured in. */
interface Case {
  readonly name: string;
  readonly pairs: number;
  readonly readBack: boolean;
  /** Has a service that was just started do the work again and again; each call returns its milliseconds. */
  prepare(service: RunningService): Promise<() => Promise<number>>;
}

/** Measures of one version, one of each for a round. */
interface Measures {
  readonly wall: Series;
  readonly cpu: Series;
}

/**
 * Compares this version with another checkout, in the parts that are named (`audio`, `video`, `publications`, `verify`): both services run at
 * once, and are given the same request in turn. Returns a Markdown table of medians, and of the medians of the ratios pair by pair.
 */
export async function compareWith(otherRoot: string, names: readonly string[], context: BenchContext): Promise<string> {
  const rows: string[] = [];
  const targets: Target[] = [];
  for (const one of await makeCases(context.folder, names)) {
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

/** Writes the media of the parts that are named, and returns their cases. */
async function makeCases(folder: string, names: readonly string[]): Promise<Case[]> {
  progress('writing the media');
  const cases: Case[] = [];
  if (names.includes('audio')) {
    const sounds = join(folder, 'sounds');
    mkdirSync(sounds);
    const many = writeSounds(sounds, SOUND_FILES, SOUND_BYTES);
    const prepare = async (service: RunningService) => () => timeService(service, 'audio', many, 'kept');
    cases.push(...withAndWithoutReadBack({ name: '500 WAV files of 64 kB', pairs: 15, prepare }));
  }
  if (names.includes('video')) {
    const video = join(folder, 'video.mp4');
    await writeVideo(video, VIDEO_BYTES);
    const prepare = async (service: RunningService) => () => timeService(service, 'video', [video]);
    cases.push(...withAndWithoutReadBack({ name: '1.2 GB', pairs: 5, prepare }));
  }
  for (const [shape, name] of SHAPES) {
    if (names.every((part) => part !== 'publications' && part !== 'verify')) break;
    const unsigned = await writePublication(join(folder, `unsigned-${shape.fragments}`), shape);
    const signing = async (service: RunningService) => () => timePublication(service, unsigned);
    if (names.includes('publications'))
      cases.push({ name: `signing ${name}`, pairs: 5, readBack: false, prepare: signing });
    const verifying = async (service: RunningService) => {
      const signed = await signForVerification(service, unsigned);
      return () => timeVerification(service, signed);
    };
    if (names.includes('verify'))
      cases.push({ name: `verifying ${name}`, pairs: 7, readBack: false, prepare: verifying });
  }
  return cases;
}

const SHAPES: readonly (readonly [PublicationShape, string])[] = [
  [LARGE, '2,000 fragments, 1.5 GB'],
  [SMALL, '20,000 fragments of 4 kB'],
];

function withAndWithoutReadBack({ name, ...one }: Omit<Case, 'readBack'>): Case[] {
  return [
    { ...one, name: `${name}, read-back off`, readBack: false },
    { ...one, name: `${name}, read-back on`, readBack: true },
  ];
}

async function measureCase(one: Case, otherRoot: string, context: BenchContext): Promise<[Measures, Measures]> {
  const { name, readBack, pairs } = one;
  const program = join(otherRoot, 'src/main.ts');
  const folder = name.replaceAll(/\W+/g, '-');
  await using before = await startBenchService(context, `${folder}-before`, { readBack, program });
  await using after = await startBenchService(context, `${folder}-after`, { readBack });
  const [timeBefore, timeAfter] = [await one.prepare(before), await one.prepare(after)];
  // The first request starts the workers and compiles what is called often: it does not count.
  for (const time of [timeBefore, timeAfter]) await time();
  const cpu: Record<'before' | 'after', number[]> = { before: [], after: [] };
  const measured = async ({ pid }: RunningService, side: 'before' | 'after'): Promise<number> => {
    const startedWith = cpuMillisecondsOf(pid);
    const milliseconds = await (side === 'before' ? timeBefore : timeAfter)();
    cpu[side].push(cpuMillisecondsOf(pid) - startedWith);
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
