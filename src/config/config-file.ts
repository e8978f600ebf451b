import { resolve } from 'node:path';

const DEFAULT_FILE = 'config/service.toml';

/** The surroundings of a configuration: those of this process by default. */
export interface ConfigSurroundings {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Returns the configuration file that an environment asks for, as an absolute path; it need not exist. */
export function configFileOf({ env = process.env, cwd = process.cwd() }: ConfigSurroundings = {}): string {
  return resolve(cwd, env['SERVICE_CONFIG_PATH'] ?? DEFAULT_FILE);
}
