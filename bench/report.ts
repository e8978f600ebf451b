import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { type Contender, median, type Series } from './measuring.ts';

/** A statement about the measurements that is held or missed. */
export interface Target {
  readonly statement: string;
  readonly measured: string;
  readonly held: boolean;
}

/** The machine that the numbers belong to. */
export function machine(): string {
  const [processor] = cpus();
  const memoryGib = Math.round(totalmem() / 1024 ** 3);
  return `${availableParallelism()} cores of ${processor?.model.trim() ?? 'an unnamed processor'}, ${memoryGib} GiB, Linux ${release()}, Node ${process.version}`;
}

/** A Markdown table of medians, each with its range. */
export function timesTable(contenders: readonly Contender[], series: ReadonlyMap<string, Series>): string {
  const rows = contenders.map(({ name }) => {
    const values = series.get(name) ?? [];
    return `| ${name} | ${seconds(median(values))} | ${seconds(Math.min(...values))} – ${seconds(Math.max(...values))} |`;
  });
  return ['| | median | range |', '|---|---|---|', ...rows].join('\n');
}

export function targetsTable(targets: readonly Target[]): string {
  const rows = targets.map(
    ({ statement, measured, held }) => `| ${statement} | ${measured} | ${held ? 'held' : '**missed**'} |`,
  );
  return ['| target | measured | |', '|---|---|---|', ...rows].join('\n');
}

export function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

/** A ratio of two medians as a target: at most, or at least, so many times. */
export function ratioTarget(
  statement: string,
  [numerator, denominator]: readonly [Series, Series],
  { atMost, atLeast }: { readonly atMost?: number; readonly atLeast?: number },
): Target {
  const ratio = median(numerator) / median(denominator);
  const held = (atMost === undefined || ratio <= atMost) && (atLeast === undefined || ratio >= atLeast);
  return { statement, measured: `${ratio.toFixed(2)} times`, held };
}
