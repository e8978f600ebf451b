import { resolve } from 'node:path';

const DEFAULT_FILE = 'config/service.toml';

/** Returns the configuration file that an environment asks for, as an absolute path; it need not exist. */
export function configFileOf({ env, cwd }: { env: NodeJS.ProcessEnv; cwd: string }): string {
  return resolve(cwd, env['SERVICE_CONFIG_PATH'] ?? DEFAULT_FILE);
}
