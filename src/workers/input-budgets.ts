import { readFileSync } from 'node:fs';
import type { Config } from '#config/config.ts';
import type { DetailsOf } from '#errors/catalogue.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import type { InputSize } from '#operations/operation.ts';
import type { TreeUsage } from '#processes/process-tree.ts';
import type { ProcessLimits } from '#processes/protections.ts';

/** The configured budgets (`worker.budgets`). */
export type Budgets = Config['worker']['budgets'];

const GIB_BYTES = 1024 ** 3;

/**
 * Limits of the kernel for a process that grows faster than it is sampled: more than its budget of memory, since the kernel
 * counts reserved memory, such as the stacks of threads.
 */
const MEMORY_BACKSTOP_FACTOR = 1.5;
const MEMORY_BACKSTOP_BASE_BYTES = GIB_BYTES;

/**
 * Processor time of each file of a folder, in seconds. A fragment that the official reader checks takes 10 ms, and one
 * that is validated before it is signed again takes as much once more.
 */
const CPU_SECONDS_PER_FILE = 0.05;

/** Returns the limits that the kernel holds a worker, and each of its programs, to. */
export function kernelLimitsOf({ open_files: openFiles, memory_bytes: memoryBytes }: Budgets): ProcessLimits {
  return { openFiles, dataBytes: Math.ceil(memoryBytes * MEMORY_BACKSTOP_FACTOR) + MEMORY_BACKSTOP_BASE_BYTES };
}

/** A budget that was exceeded, and the phase that the input reached last; `started` before the first. */
export type Excess = DetailsOf<'INPUT_OVER_BUDGET'>;

/** The resource usage of an input, apart from other inputs as far as that is known. */
export interface InputUsage extends Omit<TreeUsage, 'memoryBytes'> {
  /** The size of the opened sources; zero while that is not known. */
  readonly size: InputSize;
  readonly phase: string;
  /** Since the phase was reached. */
  readonly phaseMs: number;
}

/**
 * Returns the first budget that an input exceeds; null where it keeps to all of them. Every limit is a function of the
 * size of what the input opened, except that of memory: media is streamed.
 *
 * - processor time of the worker and its programs: base + GiB x factor + files x 0.05 s, where bytes of the input count as
 *   far as something was read: a server may claim any size
 * - wall time of one phase: base + GiB x factor
 * - memory of the worker and its programs together
 * - bytes written by the worker and its programs, to scratch, outputs and uploads: base + bytes x factor
 */
export function excessOf(budgets: Budgets, usage: InputUsage, tree: TreeUsage | null): Excess | null {
  const { size, phase } = usage;
  const gib = size.bytes / GIB_BYTES;
  const gibRead = Math.min(size.bytes, usage.readBytes) / GIB_BYTES;
  const cpuSeconds =
    budgets.cpu_seconds_base + gibRead * budgets.cpu_seconds_per_gib + size.files * CPU_SECONDS_PER_FILE;
  const phaseSeconds = budgets.phase_seconds_base + gib * budgets.phase_seconds_per_gib;
  const outputBytes = budgets.output_bytes_base + size.bytes * budgets.output_factor;
  const checks: readonly Omit<Excess, 'phase'>[] = [
    { budget: 'memory', unit: 'bytes', limit: budgets.memory_bytes, used: tree?.memoryBytes ?? 0 },
    { budget: 'cpu_time', unit: 'seconds', limit: cpuSeconds, used: usage.cpuMs / 1000 },
    { budget: 'output_size', unit: 'bytes', limit: outputBytes, used: usage.writtenBytes },
    { budget: 'wall_time', unit: 'seconds', limit: phaseSeconds, used: usage.phaseMs / 1000 },
  ];
  const exceeded = checks.find(({ limit, used }) => used > limit);
  return exceeded === undefined
    ? null
    : { ...exceeded, limit: rounded(exceeded.limit), used: rounded(exceeded.used), phase };
}

/** Rounds to tenths: more of a sampled value would claim a precision that it does not have. */
function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

/**
 * Reads the limits that this process was started with; 0 where the system does not tell. To be called at its start: once they
 * are used up, nothing can be opened.
 */
export function readKernelLimits(): ProcessLimits {
  let text = '';
  try {
    text = readFileSync('/proc/self/limits', 'latin1');
  } catch {
    // This is not Linux.
  }
  const limitOf = (name: string) => Number(new RegExp(`^${name}\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { openFiles: limitOf('Max open files'), dataBytes: limitOf('Max data size') };
}

/** Returns the budget that an error, or what caused it, says is used up: open files or memory; null for any other error. */
export function exhaustedBudget(error: unknown, { openFiles, dataBytes }: ProcessLimits, phase: string): Excess | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (systemErrorCode(cause) === 'EMFILE') {
      return { budget: 'open_files', unit: 'files', limit: openFiles, used: openFiles, phase };
    }
    if (isForMemory(cause)) return { budget: 'memory', unit: 'bytes', limit: dataBytes, used: dataBytes, phase };
  }
  return null;
}

/**
 * Returns true for an error that V8 and Node throw where the kernel grants no memory for a buffer; smaller things
 * end the process.
 */
function isForMemory(error: Error): boolean {
  const code = systemErrorCode(error);
  if (code === 'ENOMEM' || code === 'ERR_MEMORY_ALLOCATION_FAILED') return true;
  return error instanceof RangeError && /allocation failed|could not allocate memory/i.test(error.message);
}
