import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** The resources that a process and all its descendants use together. */
export interface TreeUsage {
  /** Processor time so far, with that of descendants that have exited. */
  readonly cpuMs: number;
  /** Private memory now, without mapped files: programs and libraries are shared. */
  readonly memoryBytes: number;
  /** Bytes given to `write` and its like so far, to files and sockets alike. */
  readonly writtenBytes: number;
  /** Bytes returned by `read` and its like so far, of files and sockets alike. */
  readonly readBytes: number;
}

/** The unit in which Linux reports processor time, whatever its own clock is (USER_HZ). */
const TICK_MS = 10;

/** Limits the depth of a tree; workers start programs through one or two launchers. */
const MAX_DEPTH = 8;

/** The niceness of a worker whose input has used much processor time: new inputs get the core before it. */
const LOWERED_NICENESS = 10;

/**
 * Returns the usage of a process and its descendants (proc(5)); null where the process has exited, or on another system
 * than Linux. Takes well under a millisecond.
 */
export function usageOfTree(pid: number): TreeUsage | null {
  const pids = pidsOfTree(pid);
  let [cpuMs, memoryBytes, writtenBytes, readBytes] = [0, 0, 0, 0];
  let isRunning = false;
  for (const one of pids) {
    const ticks = ticksOf(one);
    if (ticks === null) continue;
    isRunning = true;
    cpuMs += ticks * TICK_MS;
    memoryBytes += memoryOf(one);
    const io = read(`/proc/${one}/io`) ?? '';
    writtenBytes += countIn(io, 'wchar');
    readBytes += countIn(io, 'rchar');
  }
  return isRunning ? { cpuMs, memoryBytes, writtenBytes, readBytes } : null;
}

/** Lowers the priority of all threads of a process and its descendants, for good: raising it takes privileges. */
export function lowerPriority(pid: number): void {
  for (const one of pidsOfTree(pid)) {
    for (const thread of threadsOf(one)) {
      try {
        setPriority(thread, LOWERED_NICENESS);
      } catch {
        // The thread has exited, or has a lower priority already.
      }
    }
  }
}

function pidsOfTree(root: number): number[] {
  const pids = [root];
  let level = pids;
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
    level = level.flatMap(childrenOf);
    pids.push(...level);
  }
  return pids;
}

/** Returns the children of a process, which the kernel lists with the thread that started each. */
function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) => {
    const children = read(`/proc/${pid}/task/${thread}/children`);
    return children === null ? [] : children.split(' ').filter(Boolean).map(Number);
  });
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return []; // The process has exited, or this is not Linux.
  }
}

/** Sums user and system time of a process and of its exited children: fields 11 to 14 of `stat`, counted from the state. */
function ticksOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name of the program is in parentheses and may contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
}

function memoryOf(pid: number): number {
  const status = read(`/proc/${pid}/status`) ?? '';
  return kilobytesIn(status, 'RssAnon') + kilobytesIn(status, 'RssShmem');
}

function kilobytesIn(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
}

/** Returns a counter; 0 where the system does not tell, as for processes of another user. */
function countIn(io: string, field: 'rchar' | 'wchar'): number {
  return Number(new RegExp(`^${field}: (\\d+)`, 'm').exec(io)?.[1] ?? 0);
}

function read(file: string): string | null {
  try {
    // Read as UTF-8, a file without a size takes no buffer of 64 kB: those kept the garbage collector of the HTTP thread busy.
    return readFileSync(file, 'utf8');
  } catch {
    return null; // The process has exited, or the system does not tell.
  }
}
