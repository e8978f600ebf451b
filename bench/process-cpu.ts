import { readFileSync } from 'node:fs';
import { processTree } from './process-memory.ts';

/** Clock ticks a second in `/proc/<pid>/stat`: 100 on every Linux that Node runs on (proc(5), `sysconf(_SC_CLK_TCK)`). */
const TICKS_PER_SECOND = 100;

/**
 * Returns the processor time that a process, its descendants, and those of them that have ended and were waited for, have
 * taken so far, in milliseconds.
 */
export function cpuMillisecondsOf(pid: number): number {
  const ticks = processTree(pid).reduce((sum, each) => sum + ticksOf(each), 0);
  return (ticks * 1000) / TICKS_PER_SECOND;
}

function ticksOf(pid: number): number {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // The process has ended since it was listed.
    return 0;
  }
  // Fields are counted behind the name, which may hold spaces: utime, stime, cutime and cstime are the 12th to the 15th.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}
