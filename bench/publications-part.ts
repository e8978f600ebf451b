import { execFile } from 'node:child_process';
import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { type Contender, measureProgram, measureRounds, median, progress, type Series } from './measuring.ts';
import { type PeakMemory, peakMemoryDuring } from './process-memory.ts';
import { LARGE, type PublicationShape, SMALL, writePublication } from './publication-media.ts';
import { megabytes, ratioTarget, type Target, targetsTable, timesTable } from './report.ts';

const run = promisify(execFile);

const MEMORY_LIMIT_BYTES = 300e6;
const MIN_FRAGMENTS_PER_SECOND = 2_500;
/** Twice the work may take so many times as long, as far as a shared machine lets time be measured. */
const MAX_GROWTH = 2.4;

/** A publication is measured at most so often: what its many files cost the disk evens out within one measurement. */
const MAX_ROUNDS = 3;

const CP = '`cp -r` and sync';
const LOOP = 'bare loop: read, write, sync each file';
const OURS = 'service, read-back off';
const HALF = 'service, read-back off, half as many fragments';
const SAMPLED = 'service, read-back of a sample';
const ALL = 'service, read-back of all';

/** Services that differ in what they read back. */
interface Services {
  readonly plain: RunningService;
  readonly sampling: RunningService;
  readonly checkingAll: RunningService;
}

/** Streaming publications: many bytes, then many files. */
export async function publicationsPart(context: BenchContext): Promise<string> {
  await using plain = await startBenchService(context, 'plain', { readBack: false });
  await using sampling = await startBenchService(context, 'sampling', { readBack: true });
  await using checkingAll = await startBenchService(context, 'checking-all', { readBack: true, allFragments: true });
  const services = { plain, sampling, checkingAll };
  const large = await measureShape(context, services, LARGE, [CP, OURS, HALF, SAMPLED, ALL]);
  const small = await measureShape(context, services, SMALL, [CP, LOOP, OURS, HALF, SAMPLED]);
  return [
    `## A publication of 2,000 fragments in 3 renditions, 1.5 GB (${roundsOf(context)} rounds, one where everything is read back)`,
    large.table,
    `## A publication of 20,000 fragments of 4 kB in 3 renditions (${roundsOf(context)} rounds, one where a sample is read back)`,
    small.table,
    '### Targets',
    targetsTable([...largeTargets(large), ...smallTargets(small), ...memoryTargets(large, small)]),
  ].join('\n\n');
}

function roundsOf({ rounds }: BenchContext): number {
  return Math.min(rounds, MAX_ROUNDS);
}

interface Measured {
  readonly series: ReadonlyMap<string, Series>;
  readonly memory: PeakMemory;
  readonly table: string;
}

async function measureShape(
  context: BenchContext,
  services: Services,
  shape: PublicationShape,
  names: readonly string[],
): Promise<Measured> {
  const [whole, half, copy] = ['whole', 'half', 'copy'].map((name) =>
    join(context.folder, `${name}-of-${shape.fragments}`),
  ) as [string, string, string];
  progress('writing the publications');
  await writePublication(whole, shape);
  await writePublication(half, { ...shape, fragments: halfOf(shape) });
  // A service that has been running for a while is what is measured: its first input starts its worker.
  for (const service of [services.plain, services.sampling]) await timePublication(service, half);
  const contenders = contendersOf(services, whole, half, copy).filter(({ name }) => names.includes(name));
  const series = await measureRounds(contenders, roundsOf(context));
  progress('memory');
  const memory = await peakMemoryDuring(services.plain.pid, () => timePublication(services.plain, whole));
  for (const folder of [whole, half]) emptyFiles(folder);
  return { series, memory, table: timesTable(contenders, series) };
}

/** Half of the fragments, rounded to whole ones in each rendition. */
function halfOf({ fragments, renditions }: PublicationShape): number {
  return Math.round(fragments / renditions / 2) * renditions;
}

function contendersOf({ plain, sampling, checkingAll }: Services, whole: string, half: string, copy: string) {
  return [
    { name: CP, measure: () => emptying(freshName(copy), (to) => timeCp(whole, to)) },
    { name: LOOP, measure: () => emptying(freshName(copy), (to) => measureProgram('./copy-loop.ts', [whole, to])) },
    { name: OURS, measure: () => timePublication(plain, whole) },
    { name: HALF, measure: () => timePublication(plain, half) },
    { name: SAMPLED, maxRounds: 1, measure: () => timePublication(sampling, whole) },
    { name: ALL, maxRounds: 1, measure: () => timePublication(checkingAll, whole) },
  ] satisfies Contender[];
}

let namesTaken = 0;

/** A name that nothing has had: what was made is emptied, and stands until all is measured. */
function freshName(name: string): string {
  namesTaken += 1;
  return `${name}-${namesTaken}`;
}

async function emptying(folder: string, measure: (folder: string) => Promise<number>): Promise<number> {
  const milliseconds = await measure(folder);
  emptyFiles(folder);
  return milliseconds;
}

/**
 * Gives back the bytes of a folder's files and leaves the files. An ext4 without a journal does not use inodes again
 * within minutes of their deletion, and passes over each of them whenever it creates a file near by: after 20,000 files
 * had been deleted, creating one took ten times as long, and what was measured was that.
 */
function emptyFiles(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) truncateSync(join(entry.parentPath, entry.name));
  }
}

async function timeCp(from: string, to: string): Promise<number> {
  const startedAt = performance.now();
  await run('cp', ['-r', from, to]);
  await run('sync', ['--file-system', to]);
  return performance.now() - startedAt;
}

/** Signs a publication and returns the milliseconds from the request to the answer. Empties the output. */
export async function timePublication(service: RunningService, folder: string): Promise<number> {
  const startedAt = performance.now();
  const { results } = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: folder }],
    output: { type: 'local', name: freshName('signed') },
    params: { playlist_pattern: '*.m3u8', init_pattern: 'init.mp4', frag_pattern: '*.m4s' },
  });
  const milliseconds = performance.now() - startedAt;
  const output = results[0]?.output_path;
  if (output === undefined) throw new Error(`the service failed: ${results[0]?.error}`);
  emptyFiles(output);
  return milliseconds;
}

function largeTargets({ series }: Measured): Target[] {
  const of = (name: string): Series => series.get(name) ?? [];
  return [
    ratioTarget('1.5 GB, read-back off: at most 2 times `cp -r` and sync', [of(OURS), of(CP)], { atMost: 2 }),
    ratioTarget(`1.5 GB: at most ${MAX_GROWTH} times half as many fragments`, [of(OURS), of(HALF)], {
      atMost: MAX_GROWTH,
    }),
  ];
}

function smallTargets({ series }: Measured): Target[] {
  const of = (name: string): Series => series.get(name) ?? [];
  const rate = (SMALL.fragments / median(of(OURS))) * 1000;
  const bare = (SMALL.fragments / median(of(LOOP))) * 1000;
  return [
    {
      statement: `4 kB, read-back off: at least ${MIN_FRAGMENTS_PER_SECOND} fragments a second`,
      measured: `${Math.round(rate)} (the bare loop: ${Math.round(bare)})`,
      held: rate >= MIN_FRAGMENTS_PER_SECOND,
    },
    ratioTarget(`4 kB: at most ${MAX_GROWTH} times half as many fragments`, [of(OURS), of(HALF)], {
      atMost: MAX_GROWTH,
    }),
  ];
}

function memoryTargets(large: Measured, small: Measured): Target[] {
  const rows = [
    ['1.5 GB', large],
    ['20,000 fragments', small],
  ] as const;
  return rows.map(([name, { memory }]) => ({
    statement: `${name}: all processes under 300 MB (PSS)`,
    measured: megabytes(memory.pssBytes),
    held: memory.pssBytes < MEMORY_LIMIT_BYTES,
  }));
}
