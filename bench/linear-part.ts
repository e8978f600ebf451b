import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService, timeService } from './bench-context.ts';
import { type Contender, measureRounds, median, progress, timeCp } from './measuring.ts';
import { writeVideo } from './media.ts';
import { type PeakMemory, peakMemoryDuring } from './process-memory.ts';
import { megabytes, seconds, type Target, targetsTable } from './report.ts';

const GIGABYTE = 1e9;
const SIZES_GB = [0.1, 1, 8];
/** A straight line, as far as a shared machine lets time be measured; `cp` and `sync` show what its memory and disk draw. */
const MAX_BEND = 1.25;
/** Peak memory is the same, as far as a garbage collector's timing lets it be. */
const MAX_MEMORY_GROWTH_BYTES = 32e6;

interface SizeRow {
  readonly sizeGb: number;
  readonly serviceMs: number;
  readonly cpMs: number;
  readonly memory: PeakMemory;
}

/** The same work on files of three sizes: time on one line, memory the same. */
export async function linearPart(context: BenchContext): Promise<string> {
  const rows: SizeRow[] = [];
  for (const sizeGb of SIZES_GB) rows.push(await measureSize(context, sizeGb));
  const lines = rows.map(({ sizeGb, serviceMs, cpMs, memory }) =>
    [`${sizeGb} GB`, seconds(serviceMs), seconds(serviceMs / sizeGb), seconds(cpMs), megabytes(memory.pssBytes)].join(
      ' | ',
    ),
  );
  return [
    `## 0.1, 1 and 8 GB, read-back off (${context.rounds} rounds, after one that does not count)`,
    [
      '| size | service | per GB | `cp` and sync | peak memory of the service (PSS) |',
      '|---|---|---|---|---|',
      ...lines.map((line) => `| ${line} |`),
    ].join('\n'),
    '### Targets',
    targetsTable(targetsOf(rows)),
  ].join('\n\n');
}

async function measureSize(context: BenchContext, sizeGb: number): Promise<SizeRow> {
  const video = join(context.folder, `linear-${sizeGb}.mp4`);
  const copy = join(context.folder, 'copy.mp4');
  progress(`writing ${sizeGb} GB`);
  await writeVideo(video, sizeGb * GIGABYTE);
  // A service for each size: what an earlier size left in memory must not hide in a later one's peak.
  await using service: RunningService = await startBenchService(context, `linear-${sizeGb}`, { readBack: false });
  // The first one starts the worker's engine: 0.1 GB took twice as long, which says nothing of the cost of a byte.
  await timeService(service, 'video', [video]);
  const ours: Contender = {
    name: `service, ${sizeGb} GB`,
    measure: () => timeService(service, 'video', [video]),
  };
  const cp: Contender = { name: `cp and sync, ${sizeGb} GB`, measure: () => timeCp(video, copy) };
  const series = await measureRounds([ours, cp], context.rounds);
  const memory = await peakMemoryDuring(service.pid, () => timeService(service, 'video', [video]));
  rmSync(video);
  const medianOf = ({ name }: Contender): number => median(series.get(name) ?? []);
  return { sizeGb, serviceMs: medianOf(ours), cpMs: medianOf(cp), memory };
}

/** Returns the cost of a further byte after the second size, as a ratio to its cost before it. A fixed cost bends no line. */
function bendOf(rows: readonly SizeRow[], millisecondsOf: (row: SizeRow) => number): number {
  const slopes = rows.slice(1).map((row, index) => {
    const before = rows[index] as SizeRow;
    return (millisecondsOf(row) - millisecondsOf(before)) / (row.sizeGb - before.sizeGb);
  });
  const [before = Number.NaN, after = Number.NaN] = slopes;
  return after / before;
}

function targetsOf(rows: readonly SizeRow[]): Target[] {
  const bend = bendOf(rows, ({ serviceMs }) => serviceMs);
  const cpBend = bendOf(rows, ({ cpMs }) => cpMs);
  const peaks = rows.map(({ memory }) => memory.pssBytes);
  const growth = (peaks.at(-1) ?? 0) - (peaks[0] ?? 0);
  return [
    {
      statement: `on one line: after 1 GB a byte costs at most ${MAX_BEND} times what it costs before`,
      measured: `${bend.toFixed(2)} times (\`cp\`: ${cpBend.toFixed(2)} times)`,
      held: bend <= MAX_BEND,
    },
    {
      statement: 'peak memory at 8 GB as at 0.1 GB, within 32 MB',
      measured: `${growth < 0 ? '−' : '+'}${megabytes(Math.abs(growth))}`,
      held: growth <= MAX_MEMORY_GROWTH_BYTES,
    },
  ];
}
