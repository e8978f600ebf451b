import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { styleText } from 'node:util';
import { FreeSpace } from '#bytes/free-space.ts';
import { parseBindAddress } from '#config/addresses.ts';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/config-file.ts';
import { loadConfig } from '#config/load-config.ts';
import { requireOptionalPackages } from '#config/optional-packages.ts';
import { RELEASE } from '#config/release.ts';
import { AppError } from '#errors/app-error.ts';
import { problemOf } from '#errors/system-problem.ts';
import { createHttpServer } from '#http/http-server.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { guardedPost } from '#jobs/callback-sender.ts';
import { Jobs } from '#jobs/jobs.ts';
import { operations } from '#operations/registry.ts';
import { probeBuckets } from '#outputs/s3-tasks.ts';
import type { Launcher } from '#processes/launcher.ts';
import { createAssertionChecker } from '#provenance/assertion-checker.ts';
import { Signers } from '#provenance/signers.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { type Log, openLogger, requireLogLevel } from '#telemetry/logger.ts';
import { limitRepeats } from '#telemetry/repeat-limit.ts';
import { Telemetry, type Tracing } from '#telemetry/telemetry.ts';
import { clearStagings } from './clear-stagings.ts';
import { createDependencyProbes } from './dependency-probes.ts';
import { prepareLauncher } from './prepare-launcher.ts';
import { Reloads } from './reload.ts';
import { requireFolders } from './service-folders.ts';

/** The time that running inputs get on shutdown. Inputs that have not finished by then are run again at the next start. */
const SHUTDOWN_TIMEOUT_MS = 20_000;

type Logger = Awaited<ReturnType<typeof openLogger>>;

/**
 * Runs the service until it is told to stop. `workerEntry` is the module that input workers run; `variables` names what
 * of the environment they get beside the allow-list.
 */
export async function runService(
  workerEntry = new URL(import.meta.resolve('./worker.ts')),
  variables: readonly string[] = [],
): Promise<void> {
  // Before it can reload, SIGHUP would end it, which systemd takes for a success and does not repair.
  if (!process.stdout.isTTY) process.on('SIGHUP', () => undefined);
  const logger = await openLogger(process.env, process.stdout);
  try {
    requireLogLevel(process.env);
    const config = await loadConfig();
    const configFile = configFileOf();
    const launcher = await prepareLauncher({ config, configFile, variables, log: logger });
    await serve({ config, workerEntry, launcher, logger, log: limitRepeats(logger) });
  } catch (error) {
    if (error instanceof AppError) logger.fatal({ reason: error.reason }, error.message);
    else logger.fatal({ err: error }, 'the service could not start');
    process.exitCode = 1;
  }
}

interface ServiceParts {
  readonly config: Config;
  readonly workerEntry: URL;
  readonly launcher: Launcher;
  readonly logger: Logger;
  /** The same log, with one line for each cause and minute. */
  readonly log: Log;
}

async function serve(parts: ServiceParts): Promise<void> {
  const { config, launcher, log } = parts;
  requireOptionalPackages(config);
  requireFolders(config, log);
  const trust = await TrustStore.open({ settings: config.trust, log });
  if (config.jobs.role === 'api') return await serveJobs(parts, trust);
  const signer = await Signers.start({ config, launcher, log, trust });
  try {
    await serveJobs(parts, trust, signer);
  } catch (error) {
    signer.close();
    throw error;
  }
}

async function serveJobs(parts: ServiceParts, trust: TrustStore, signer?: Signers): Promise<void> {
  const { config, workerEntry, launcher, logger, log } = parts;
  const { s3 } = config.output_sinks;
  if (s3 !== undefined && config.jobs.role !== 'api') await probeBuckets(s3, launcher);
  const tracing = await startTracing(config, log);
  const freeSpace = new FreeSpace({ outputs: config.output_sinks.local.base_dir, scratch: config.jobs.scratch_dir });
  const configNow = () => reloads.config;
  const reloads: Reloads = new Reloads({
    ...{ config, identities: signer, trust, log },
    load: loadConfig,
    identitiesChanged: () => jobs.identitiesChanged(),
  });
  const telemetry: Telemetry = new Telemetry(
    {
      store: () => jobs.state(),
      node: () => jobs.nodeState(),
      disks: () => freeSpace.now(),
      version: RELEASE.version,
      operations: operations.map(({ name }) => name),
      callers: () => reloads.config.auth.tokens.map(({ caller }) => caller),
    },
    tracing,
  );
  const deniedNetworks = new DeniedNetworks(config.input_resolvers.http.deny_networks);
  const jobs: Jobs = new Jobs({
    config,
    configNow,
    workerEntry,
    launcher,
    trust,
    ...(signer && { signer }),
    probes: createDependencyProbes({ config: configNow, launcher, ...(signer && { signer }) }),
    log,
    telemetry,
    ...(config.callbacks.secret !== undefined && { post: guardedPost(deniedNetworks) }),
    clearStagings: (attempt) => clearStagings({ config, launcher, log }, attempt),
    storeLost: (error) => {
      // A supervisor starts the service again. Running inputs are run again then: their results could not be recorded.
      logger.fatal({ reason: error.reason, err: error.cause }, error.message);
      process.exit(1);
    },
  });
  await jobs.start();
  const { checkAssertions, replaceProcesses, close: closeAssertionChecker } = createAssertionChecker({ launcher });
  // Processes that began before could read the files of new identities.
  signer?.onRenewal(replaceProcesses);
  try {
    const server = await createHttpServer({
      ...{ config, configNow, jobs, operations, checkAssertions, telemetry, logger, log, trust },
      reload: (by) => reloads.reload(by),
      ...(signer && { identities: signer }),
    });
    stopOnSignals(logger, async () => {
      await server.close();
      await closeAssertionChecker();
      await jobs.stop(SHUTDOWN_TIMEOUT_MS);
      await tracing?.close();
      trust.close();
    });
    await listen(server, config);
    reloadOnSignal(reloads);
    const [address] = server.addresses();
    logger.info({ version: RELEASE.version, address }, `${RELEASE.product} is ready`);
    if (process.stdout.isTTY && typeof address === 'object') process.stdout.write(welcome(config, address));
  } catch (error) {
    await jobs.stop(0);
    throw error;
  }
}

/** Starts tracing. OpenTelemetry takes memory, so it is loaded only when a collector is configured. */
async function startTracing(config: Config, log: Log): Promise<Tracing | null> {
  const { otlp_endpoint: endpoint } = config.telemetry;
  if (endpoint === undefined) return null;
  const { startOtlpTracing } = await import('#telemetry/otlp-tracing.ts');
  const service = { name: RELEASE.product.toLowerCase(), version: RELEASE.version };
  return startOtlpTracing({
    endpoint,
    service,
    failed: (problem) => log.warn({ dependency: 'otlp_endpoint', problem }, 'traces could not be exported'),
  });
}

/** Reloads on SIGHUP, but at a terminal: there it says that the terminal was closed. */
function reloadOnSignal(reloads: Reloads): void {
  if (process.stdout.isTTY) return;
  process.on('SIGHUP', () => {
    // The log has the cause.
    reloads.reload({ signal: 'SIGHUP' }).catch(() => undefined);
  });
}

type HttpServer = Awaited<ReturnType<typeof createHttpServer>>;

async function listen(server: HttpServer, config: Config): Promise<void> {
  const address = parseBindAddress(config.server.bind_addr);
  assert(address !== null, 'the configuration holds an address');
  try {
    await server.listen(address);
  } catch (cause) {
    throw new AppError('BIND_FAILED', { address: config.server.bind_addr, problem: problemOf(cause) }, { cause });
  }
}

/** Stops the service in order on the first signal, and exits on the second. */
function stopOnSignals(logger: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      logger.info({ signal }, 'stopping: nothing more is accepted, what runs is finished or queued again');
      stop().then(
        () => {
          logger.info('stopped in order');
          process.exit(0);
        },
        (error: unknown) => {
          logger.fatal({ err: error }, 'the service did not stop in order');
          process.exit(1);
        },
      );
    });
  }
}

/** Returns the lines that tell somebody at a terminal where everything of a running service is. */
export function welcome(config: Config, { address, family, port }: AddressInfo): string {
  const isEverywhere = address === '0.0.0.0' || address === '::';
  const host = isEverywhere ? 'localhost' : family === 'IPv6' ? `[${address}]` : address;
  const base = `http://${host}:${port}`;
  const { local, s3 } = config.output_sinks;
  const file = configFileOf();
  const lines = [
    ['Console', `${base}/`],
    ['API reference', config.server.docs ? `${base}/docs` : 'switched off (server.docs)'],
    ['Outputs', [local.base_dir, ...(s3?.buckets ?? []).map((bucket) => `s3://${bucket}`)].join(', ')],
    ['Configuration', existsSync(file) ? file : `defaults: there is no ${file}`],
  ];
  const text = lines.map(([label = '', value = '']) => `  ${styleText('bold', label.padEnd(15))}${value}\n`).join('');
  return `\n${text}\n  Ctrl-C stops the service.\n\n`;
}
