import { readFileSync } from 'node:fs';
import { processTree } from './process-memory.ts';

/**
 * The bytes that a process and its descendants caused to be written to disks while `work` ran, as the kernel counts them
 * (`write_bytes` of proc_pid_io(5)). Processes that end meanwhile are not counted.
 */
export async function writtenBytesDuring(pid: number, work: () => Promise<unknown>): Promise<number> {
  const before = writtenBytesOf(pid);
  await work();
  const after = writtenBytesOf(pid);
  return [...after].reduce((sum, [each, bytes]) => sum + bytes - (before.get(each) ?? 0), 0);
}

function writtenBytesOf(pid: number): Map<number, number> {
  return new Map(
    processTree(pid).map((each) => {
      const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${each}/io`, 'latin1')) ?? [];
      return [each, Number(bytes ?? 0)];
    }),
  );
}
