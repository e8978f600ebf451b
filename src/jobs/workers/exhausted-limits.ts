import { readFileSync } from 'node:fs';
import type { DetailsOf } from '#errors/catalogue.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

/** Limits of the kernel on this process; 0 where the system does not tell. */
export interface KernelLimits {
  readonly openFiles: number;
  readonly dataBytes: number;
}

/** Reads the limits that this process was started with. To be called at its start: once they are used up, nothing can be opened. */
export function readKernelLimits(): KernelLimits {
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
export function exhaustedBudget(
  error: unknown,
  { openFiles, dataBytes }: KernelLimits,
  phase: string,
): DetailsOf<'INPUT_OVER_BUDGET'> | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (systemErrorCode(cause) === 'EMFILE') {
      return { budget: 'open_files', unit: 'files', limit: openFiles, used: openFiles, phase };
    }
    if (isForMemory(cause)) return { budget: 'memory', unit: 'bytes', limit: dataBytes, used: dataBytes, phase };
  }
  return null;
}

/** V8 and Node throw where the kernel grants no memory for a buffer; smaller things end the process. */
function isForMemory(error: Error): boolean {
  const code = systemErrorCode(error);
  if (code === 'ENOMEM' || code === 'ERR_MEMORY_ALLOCATION_FAILED') return true;
  return error instanceof RangeError && /allocation failed|could not allocate memory/i.test(error.message);
}
