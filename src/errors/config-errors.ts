import { entry } from './entry.ts';

/** What can be wrong with the configuration. Each stops the start, so no caller of the API meets them. */
export const configErrors = {
  CONFIG_INVALID: entry<{ problems: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ problems }) =>
      `The configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${problems.map((problem) => `  - ${problem}`).join('\n')}\nThe keys are explained in config/service.toml.`,
  ),
  CONFIG_FILE_MALFORMED: entry<{ file: string; line: number; column: number; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, line, column, problem }) => `${file}, line ${line}, column ${column}: ${problem}. Correct it there.`,
  ),
  CONFIG_FILE_UNREADABLE: entry<{ file: string; problem: string; named: boolean }>(
    'INTERNAL_ERROR',
    ({ file, problem, named }) =>
      `The configuration file ${file}${named ? ', named by SERVICE_CONFIG_PATH,' : ''} cannot be read: ${problem}. Correct the path or the permissions.`,
  ),
  LOG_LEVEL_UNKNOWN: entry<{ levels: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ levels }) => `LOG_LEVEL names no level. Set it to one of ${levels.join(', ')}, or leave it unset.`,
  ),
  FOLDER_UNUSABLE: entry<{ key: string; folder: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ key, folder, problem }) =>
      `The folder ${folder} cannot be written: ${problem}. Let the user of the service own it, or set ${key} to another.`,
  ),
  SANDBOX_UNAVAILABLE: entry<{ problem: string; remedy: string }>(
    'INTERNAL_ERROR',
    ({ problem, remedy }) =>
      `worker.sandbox is "require", and this system gives workers no sandbox: ${problem}. ${remedy} Or set worker.sandbox to "auto".`,
  ),
  BIND_FAILED: entry<{ address: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ address, problem }) =>
      `The service cannot listen on ${address}: ${problem}. Set server.bind_addr (or SERVICE__SERVER__BIND_ADDR) to an address and port that are free here.`,
  ),
};
