import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** What a process and all its descendants use, together. */
export interface TreeUsage {
  /** Processor time so far, with that of descendants that have ended. */
  readonly cpuMs: number;
  /** Memory now, without what files in memory are mapped to: programs and libraries are shared. */
  readonly memoryBytes: number;
  /** Bytes given to `write` and its like so far, to files and sockets alike. */
  readonly writtenBytes: number;
  /** Bytes returned by `read` and its like so far, of files and sockets alike. */
  readonly readBytes: number;
}

/** Linux shows processor time to programs in ticks of 10 ms, whatever its own clock is (USER_HZ). */
const TICK_MS = 10;

/** A tree is followed so deep; workers start programs through one or two launchers. */
const MAX_DEPTH = 8;

/** Niceness of a worker whose input has used much processor time: newcomers get the core before it. */
const LOWERED_NICENESS = 10;

/**
 * Returns what a process and its descendants use, as proc(5) tells; null where the process is gone, or on another
 * system than Linux. Takes well under a millisecond.
 */
export function usageOfTree(pid: number): TreeUsage | null {
  const pids = pidsOfTree(pid);
  let [cpuMs, memoryBytes, writtenBytes, readBytes] = [0, 0, 0, 0];
  let isThere = false;
  for (const one of pids) {
    const ticks = ticksOf(one);
    if (ticks === null) continue;
    isThere = true;
    cpuMs += ticks * TICK_MS;
    memoryBytes += memoryOf(one);
    const io = read(`/proc/${one}/io`) ?? '';
    writtenBytes += countIn(io, 'wchar');
    readBytes += countIn(io, 'rchar');
  }
  return isThere ? { cpuMs, memoryBytes, writtenBytes, readBytes } : null;
}

/** Lowers the priority of all threads of a process and its descendants, for good: raising it takes privileges. */
export function lowerPriority(pid: number): void {
  for (const one of pidsOfTree(pid)) {
    for (const thread of threadsOf(one)) {
      try {
        setPriority(thread, LOWERED_NICENESS);
      } catch {
        // The thread has ended, or has a lower priority already.
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

/** The kernel lists a child with the thread that started it. */
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
    return []; // The process is gone, or this is not Linux.
  }
}

/** In `stat`, counted from the state: user and system time, then those of children that have ended. */
function ticksOf(pid: number): number | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name of the program stands in parentheses and may itself hold any character.
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

/** 0 where the system does not say, as of processes of another user. */
function countIn(io: string, field: 'rchar' | 'wchar'): number {
  return Number(new RegExp(`^${field}: (\\d+)`, 'm').exec(io)?.[1] ?? 0);
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return null; // The process is gone, or the system does not tell.
  }
}
