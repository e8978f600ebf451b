import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Ended, ended } from './run-program.ts';

export const PROGRAM = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** Runs the program until it exits, in a folder and with variables of its own. */
export async function attestream(
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd, env: { ...process.env, ...env } });
  child.stdin.end();
  return await ended(child);
}

/** Returns the entries of `--json`. */
export function entriesOf(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
