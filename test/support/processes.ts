import { readFileSync } from 'node:fs';

/**
 * Returns true while a process runs. One that has exited and whose parent has not asked for its end yet (a zombie: state Z of
 * proc(5)) does not: where the first process of a container takes no notice of orphans, it stays for good.
 */
export function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program stands in parentheses and may itself hold any character.
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false; // There is no such process any more.
  }
}
