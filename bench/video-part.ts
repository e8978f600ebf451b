import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import {
  type BenchContext,
  SIDECAR_ALONE,
  sdkParameters,
  startBenchService,
  timeSdk,
  timeService,
} from './bench-context.ts';
import {
  type Contender,
  measureProgram,
  measureRounds,
  progress,
  type Series,
  timeCp,
  timeSha256sum,
} from './measuring.ts';
import { addSecondMediaBox, writeVideo } from './media.ts';
import { type PeakMemory, peakMemoryDuring, peakMemoryOfProgram } from './process-memory.ts';
import { megabytes, ratioTarget, type Target, targetsTable, timesTable } from './report.ts';

const VIDEO_BYTES = 1_200_000_000;
const SMALL_VIDEO_BYTES = 10_000_000;
const MEMORY_LIMIT_BYTES = 300e6;

/** One large file through the whole API, beside the floor, `cp` and the SDK alone. */
export async function videoPart(context: BenchContext): Promise<string> {
  const { folder, rounds } = context;
  const [one, several, small] = ['one.mp4', 'several.mp4', 'small.mp4'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  progress('writing the videos');
  await writeVideo(one, VIDEO_BYTES);
  await writeVideo(several, VIDEO_BYTES / 2);
  addSecondMediaBox(several, VIDEO_BYTES / 2);
  await writeVideo(small, SMALL_VIDEO_BYTES);
  await using plain = await startBenchService(context, 'plain', { readBack: false });
  await using checked = await startBenchService(context, 'checked', { readBack: true });
  // A service that has been running for a while is what is measured: its first input starts its worker.
  await timeService(plain, 'video', [small]);
  await timeService(checked, 'video', [small]);

  const contenders = contendersOf(context, one, several, plain, checked);
  const series = await measureRounds(contenders, rounds);
  const memory = await measureMemory(context, one, several, plain, checked);
  for (const file of [one, several, small]) rmSync(file);
  return [
    `## A video of 1.2 GB, random bytes (${rounds} rounds)`,
    timesTable(contenders, series),
    '### Peak memory of all processes together',
    memoryTable(memory),
    '### Targets',
    targetsTable([...timeTargets(series), ...memoryTargets(memory)]),
  ].join('\n\n');
}

const FLOOR = 'floor: copy, hash, sync in two threads';
const CP = '`cp` and sync';
const OURS = 'service, read-back off';
const SDK = 'SDK alone: `Builder.sign`, sync';
const OURS_CHECKED = 'service, read-back on';
const SDK_CHECKED = 'SDK alone: sign, sync, read back';
const FLAT = 'service, read-back off, several `mdat` (flat hash)';
const FLAT_CHECKED = 'service, read-back on, several `mdat` (flat hash)';
const SHA256SUM = '`sha256sum`';
const SIDECAR = 'service, sidecar without a copy, read-back off';

function contendersOf(
  context: BenchContext,
  one: string,
  several: string,
  plain: RunningService,
  checked: RunningService,
): Contender[] {
  const copy = join(context.folder, 'copy.mp4');
  const sdk = (readBack: boolean) => () => timeSdk(context, 'video/mp4', [one], { readBack });
  return [
    { name: FLOOR, measure: () => timeFloor(one, copy) },
    { name: CP, measure: () => timeCp(one, copy) },
    { name: OURS, measure: () => timeService(plain, 'video', [one]) },
    { name: SDK, measure: sdk(false) },
    { name: OURS_CHECKED, measure: () => timeService(checked, 'video', [one]) },
    { name: SDK_CHECKED, measure: sdk(true) },
    { name: FLAT, measure: () => timeService(plain, 'video', [several]) },
    { name: FLAT_CHECKED, measure: () => timeService(checked, 'video', [several]) },
    { name: SHA256SUM, measure: () => timeSha256sum(one) },
    { name: SIDECAR, measure: () => timeService(plain, 'video', [one], 'removed', SIDECAR_ALONE) },
  ];
}

async function timeFloor(from: string, to: string): Promise<number> {
  const milliseconds = await measureProgram('./floor.ts', [from, to]);
  rmSync(to);
  return milliseconds;
}

function timeTargets(series: ReadonlyMap<string, Series>): Target[] {
  const of = (name: string): Series => series.get(name) ?? [];
  return [
    ratioTarget('read-back off: at most 1.5 times the floor', [of(OURS), of(FLOOR)], { atMost: 1.5 }),
    ratioTarget('read-back off: at least 3 times faster than the SDK', [of(SDK), of(OURS)], { atLeast: 3 }),
    ratioTarget('sidecar without a copy: at most 1.2 times `sha256sum`', [of(SIDECAR), of(SHA256SUM)], { atMost: 1.2 }),
    ratioTarget('read-back on: at least 2 times faster than the SDK', [of(SDK_CHECKED), of(OURS_CHECKED)], {
      atLeast: 2,
    }),
  ];
}

type MemoryRow = readonly [name: string, memory: PeakMemory];

/** Measured apart from the times: reading a process's memory map stops the process for a moment. */
async function measureMemory(
  context: BenchContext,
  one: string,
  several: string,
  plain: RunningService,
  checked: RunningService,
): Promise<MemoryRow[]> {
  const during = async (name: string, service: RunningService, file: string): Promise<MemoryRow> => {
    progress(`memory: ${name}`);
    return [name, await peakMemoryDuring(service.pid, () => timeService(service, 'video', [file]))];
  };
  const alone = async (name: string, readBack: boolean): Promise<MemoryRow> => {
    progress(`memory: ${name}`);
    const outFolder = join(context.folder, 'sdk-memory');
    const parameters = sdkParameters(context, 'video/mp4', [one], outFolder, { readBack });
    const peak = await peakMemoryOfProgram('./sdk-program.ts', parameters);
    rmSync(outFolder, { recursive: true });
    return [name, peak];
  };
  return [
    await during(OURS, plain, one),
    await during(OURS_CHECKED, checked, one),
    await during(FLAT, plain, several),
    await during(FLAT_CHECKED, checked, several),
    await alone(SDK, false),
    await alone(SDK_CHECKED, true),
  ];
}

function memoryTable(rows: readonly MemoryRow[]): string {
  const lines = rows.map(
    ([name, { pssBytes, rssBytes }]) => `| ${name} | ${megabytes(pssBytes)} | ${megabytes(rssBytes)} |`,
  );
  return ['| | PSS | RSS, shared memory counted in each |', '|---|---|---|', ...lines].join('\n');
}

function memoryTargets(rows: readonly MemoryRow[]): Target[] {
  return rows
    .filter(([name]) => name === OURS || name === OURS_CHECKED)
    .map(([name, { pssBytes }]) => ({
      statement: `${name}: under 300 MB`,
      measured: megabytes(pssBytes),
      held: pssBytes < MEMORY_LIMIT_BYTES,
    }));
}
