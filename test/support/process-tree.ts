import { readdirSync, readFileSync } from 'node:fs';

/** Ends a process and all that it started, children last, so that nobody starts them again. */
export function killTree(pid: number): void {
  const children = childrenOf(pid);
  kill(pid);
  for (const child of children) killTree(child);
}

/** Processes in whose environment a variable has a value: whoever was started with it, and whoever they started. */
export function processesWith(variable: string, value: string): number[] {
  const wanted = `\0${variable}=${value}\0`;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => `\0${processText(Number(pid), 'environ')}`.includes(wanted))
    .map(Number);
}

export function childrenOf(pid: number): number[] {
  const threads = list(`/proc/${pid}/task`);
  return threads.flatMap((thread) =>
    processText(pid, `task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
}

/** Processes that a process started, and that they started. */
export function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

/** The command line of a process, empty where it has ended. */
export function commandOf(pid: number): string {
  return processText(pid, 'cmdline').replaceAll('\0', ' ');
}

/** Reads a file that the kernel has of a process, such as `environ`; empty where the process has ended. Linux only. */
export function processText(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8');
  } catch {
    // The process has ended, or is somebody else's.
    return '';
  }
}

export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The process has ended.
    return [];
  }
}
