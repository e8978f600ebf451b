import { spawnSync } from 'node:child_process';

/** Runs a program in a folder and returns what it printed; throws with its complaint where it fails. */
export function runTool(folder: string, tool: string, parameters: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(tool, parameters, { cwd: folder, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${tool} ${parameters.join(' ')} failed: ${error?.message ?? stderr}`);
}
