import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService, timeService } from './bench-context.ts';
import { measureRounds, median, progress } from './measuring.ts';
import { writeVideo } from './media.ts';
import { type PeakMemory, peakMemoryDuring } from './process-memory.ts';
import { megabytes, seconds, type Target, targetsTable } from './report.ts';

const GIGABYTE = 1e9;
const SIZES_GB = [0.1, 1, 8];
/** A straight line, as far as a shared machine's disk can draw one: its two pieces differ in slope by such a factor. */
const MAX_SLOPE_FACTOR = 1.5;
/** Peak memory is the same, as far as a garbage collector's timing lets it be. */
const MAX_MEMORY_GROWTH_BYTES = 32e6;

interface SizeRow {
  readonly sizeGb: number;
  readonly medianMs: number;
  readonly memory: PeakMemory;
}

/** The same work on files of three sizes: time on one line, memory the same. */
export async function linearPart(context: BenchContext): Promise<string> {
  const rows: SizeRow[] = [];
  for (const sizeGb of SIZES_GB) rows.push(await measureSize(context, sizeGb));
  const slopes = slopesOf(rows);
  const lines = rows.map(({ sizeGb, medianMs, memory }, index) => {
    const slope = slopes[index - 1];
    const further = slope === undefined ? '' : seconds(slope);
    return `| ${sizeGb} GB | ${seconds(medianMs)} | ${seconds(medianMs / sizeGb)} | ${further} | ${megabytes(memory.pssBytes)} |`;
  });
  return [
    `### 0.1, 1 and 8 GB, read-back off (${context.rounds} rounds, after one that does not count)`,
    [
      '| size | median | per GB | each further GB since the last size | peak memory (PSS) |',
      '|---|---|---|---|---|',
      ...lines,
    ].join('\n'),
    '#### Targets',
    targetsTable(targetsOf(rows)),
  ].join('\n\n');
}

async function measureSize(context: BenchContext, sizeGb: number): Promise<SizeRow> {
  const video = join(context.folder, `linear-${sizeGb}.mp4`);
  progress(`writing ${sizeGb} GB`);
  await writeVideo(video, sizeGb * GIGABYTE);
  // A service for each size: what an earlier size left in memory must not hide in a later one's peak.
  await using service: RunningService = await startBenchService(context, `linear-${sizeGb}`, { readBack: false });
  // The first one starts the worker's engine, and pays for memory that the machine has never touched: 0.1 GB took twice as
  // long, which says nothing of the cost of a byte.
  await timeService(service, 'video', [video]);
  const name = `service, ${sizeGb} GB`;
  const series = await measureRounds([{ name, measure: () => timeService(service, 'video', [video]) }], context.rounds);
  const memory = await peakMemoryDuring(service.pid, () => timeService(service, 'video', [video]));
  rmSync(video);
  return { sizeGb, medianMs: median(series.get(name) ?? []), memory };
}

/** What each further gigabyte takes from one size to the next, in milliseconds. */
function slopesOf(rows: readonly SizeRow[]): number[] {
  return rows.slice(1).map((row, index) => {
    const { sizeGb, medianMs } = rows[index] as SizeRow;
    return (row.medianMs - medianMs) / (row.sizeGb - sizeGb);
  });
}

function targetsOf(rows: readonly SizeRow[]): Target[] {
  const slopes = slopesOf(rows);
  const factor = Math.max(...slopes) / Math.min(...slopes);
  const peaks = rows.map(({ memory }) => memory.pssBytes);
  const growth = (peaks.at(-1) ?? 0) - (peaks[0] ?? 0);
  return [
    {
      statement: `on one line: a further byte costs the same before and after 1 GB, within ${MAX_SLOPE_FACTOR} times`,
      measured: `${factor.toFixed(2)} times`,
      held: factor <= MAX_SLOPE_FACTOR,
    },
    {
      statement: 'peak memory at 8 GB as at 0.1 GB, within 32 MB',
      measured: `${growth < 0 ? '−' : '+'}${megabytes(Math.abs(growth))}`,
      held: growth <= MAX_MEMORY_GROWTH_BYTES,
    },
  ];
}
