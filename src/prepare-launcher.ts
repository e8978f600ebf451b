import type { Config } from '#config/config.ts';
import { secretPaths } from '#config/protected-paths.ts';
import { AppError } from '#errors/app-error.ts';
import { disableCoreDumps, Launcher } from '#processes/launcher.ts';
import { probeProtections, ptraceScope } from '#processes/protections.ts';
import type { Log } from '#telemetry/logger.ts';

interface LauncherParts {
  readonly config: Config;
  /** Hidden from child processes, as the files that it names are. */
  readonly configFile: string;
  /** Variables that child processes get beside the allow-list. */
  readonly variables?: readonly string[];
  readonly log: Log;
}

/** Probes the protections of child processes, and logs them in one line. Throws `SANDBOX_UNAVAILABLE`. */
export async function prepareLauncher({ config, configFile, variables = [], log }: LauncherParts): Promise<Launcher> {
  const { sandbox } = config.worker;
  const [protections] = await Promise.all([probeProtections(sandbox), disableCoreDumps()]);
  const { missing } = protections;
  const [lacking] = missing.filter(({ protection }) => protection === 'sandbox');
  if (sandbox === 'require' && lacking !== undefined) throw new AppError('SANDBOX_UNAVAILABLE', lacking);
  const active = (['sandbox', 'privileges', 'limits'] as const).filter((name) =>
    missing.every(({ protection }) => protection !== name),
  );
  const fields = { active, missing, ptrace_scope: ptraceScope() };
  if (missing.length === 0) log.info(fields, 'all protections of child processes are active');
  else log.warn(fields, 'some protections of child processes are missing: a worker that is taken over can do more');
  const readable = config.input_resolvers.local.roots ?? [];
  return new Launcher({ protections, hidden: secretPaths(config, configFile), readable, variables });
}
