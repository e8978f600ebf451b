import { statfs } from 'node:fs/promises';
import { FOLDER_HANGS, FolderProbes } from '#bytes/folder-probe.ts';
import type { Config } from '#config/config.ts';
import { identitiesOf } from '#config/identities.ts';
import { requireOptionalPackages } from '#config/optional-packages.ts';
import { AppError } from '#errors/app-error.ts';
import type { Dependency, DependencyProbes } from '#jobs/dependencies.ts';
import { probeStore, type StoreState } from '#jobs/store-probe.ts';
import { findPrograms } from '#packaging/find-programs.ts';
import { Launcher } from '#processes/launcher.ts';
import { probeSigning } from '#provenance/probe-signing.ts';
import { Signers } from '#provenance/signers.ts';
import { NO_TRUST_LISTS, type TrustList, type TrustLists } from '#provenance/trust-lists.ts';
import { TrustStore } from '#provenance/trust-store.ts';
import { CollectedLog } from '#telemetry/collected-log.ts';
import { createDependencyProbes } from './dependency-probes.ts';
import { prepareLauncher } from './prepare-launcher.ts';
import { folderChecks } from './service-folders.ts';

/** A finding of one check. */
export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'warning' | 'failed';
  /** Says what was found, and of a problem the remedy. */
  readonly detail: string;
}

/** The part of a disk below which the alerts of docs/runbook.md warn. */
const LOW_SPACE_PART = 0.1;

/** A clock that is further off gives certificates and time-stamps other times than their readers see. */
const MAX_CLOCK_OFFSET_MS = 10_000;

const CLOCK_TIMEOUT_MS = 10_000;

/**
 * Checks all that the service needs, one after the other, by the checks of its start and the probes of its outages. Takes no lock,
 * so that it can run beside the service.
 */
export async function* preflight(config: Config, configFile: string): AsyncGenerator<Finding> {
  const isSigning = config.jobs.role !== 'api';
  const protections = await sandbox(config, configFile);
  yield* protections.findings;
  yield* folders(config, protections.launcher);
  if (isSigning) yield* programs();
  const trust = await trustLists(config);
  yield* trust.findings;
  const identities = isSigning ? await signersOf(config, protections.launcher, trust.lists) : null;
  const signers = identities?.signers;
  try {
    yield* identities?.findings ?? [];
    if (signers !== undefined) yield* authorities(config, signers);
    const store = await storeOf(config);
    yield store.finding;
    // Without roots: probes note at a start which ones are mounted, in this process.
    const rootless = { ...config, input_resolvers: { ...config.input_resolvers, local: {} } };
    yield* dependencies(config, createDependencyProbes({ config: () => rootless, launcher: protections.launcher }));
    yield* clocks(config, store.state);
  } finally {
    signers?.close();
  }
}

function ok(check: string, detail: string): Finding {
  return { check, state: 'ok', detail };
}

/** Returns the finding of a check that was refused. Throws what is no refusal. */
function failed(check: string, error: unknown): Finding {
  if (!(error instanceof AppError)) throw error;
  return { check, state: 'failed', detail: error.message };
}

/** Joins a problem, which may end with a full stop, and its remedy. */
function sentences(problem: string, remedy = ''): string {
  return remedy === '' ? problem : `${problem.replace(/\.$/, '')}. ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`;
}

/** Returns what a part of the start warns of. */
function warningsOf(check: string, { messages }: CollectedLog): Finding[] {
  return messages
    .filter(({ level }) => level !== 'info')
    .map(({ level, message, fields }) => {
      const { problem, remedy, identity } = fields as {
        readonly problem?: string;
        readonly remedy?: string;
        readonly identity?: string;
      };
      const detail = sentences(problem === undefined ? message : `${message}: ${problem}`, remedy);
      return {
        check: [check, identity].filter(Boolean).join(' '),
        state: level === 'warn' ? 'warning' : 'failed',
        detail,
      };
    });
}

async function sandbox(
  config: Config,
  configFile: string,
): Promise<{ readonly launcher: Launcher; readonly findings: readonly Finding[] }> {
  const log = new CollectedLog();
  try {
    const launcher = await prepareLauncher({ config, configFile, log });
    const missing = log.messages.flatMap(
      ({ fields }) => fields['missing'] as { readonly protection: string; readonly problem: string; remedy: string }[],
    );
    const warnings = missing.map(({ protection, problem, remedy }): Finding => {
      return { check: 'sandbox', state: 'warning', detail: sentences(`${protection}: ${problem}`, remedy) };
    });
    const complete = ok('sandbox', 'all protections of child processes are active');
    return { launcher, findings: missing.length === 0 ? [complete] : warnings };
  } catch (error) {
    return { launcher: new Launcher(), findings: [failed('sandbox', error)] };
  }
}

async function* folders(config: Config, launcher: Launcher): AsyncGenerator<Finding> {
  const probes = new FolderProbes(launcher);
  for (const { key, folder, check } of folderChecks(config, new CollectedLog())) {
    const name = `folder ${key}`;
    try {
      await requireAnswer(probes, key, folder);
      check();
      const { bavail, blocks, bsize } = await statfs(folder);
      const free = `${folder}, ${Math.round((bavail * bsize) / 1024 ** 3)} of ${Math.round((blocks * bsize) / 1024 ** 3)} GiB free`;
      const isLow = bavail < blocks * LOW_SPACE_PART;
      yield isLow
        ? { check: name, state: 'warning', detail: `${free}. Free space: inputs wait where nothing more fits` }
        : ok(name, free);
    } catch (error) {
      yield failed(name, error);
    }
  }
}

/** Throws `FOLDER_UNUSABLE` for a folder that hangs, as this process would in its check, which tells of all other problems. */
async function requireAnswer(probes: FolderProbes, key: string, folder: string): Promise<void> {
  for (const write of [false, true]) {
    const problem = await probes.problemOf({ folder, write, wasMounted: false });
    if (problem === FOLDER_HANGS) throw new AppError('FOLDER_UNUSABLE', { key, folder, problem });
    // One that is missing is made by the check, with the rights that it needs.
    if (problem !== null) return;
  }
}

function* programs(): Generator<Finding> {
  for (const { name, path, problem, isNeeded } of findPrograms()) {
    const check = `program ${name}`;
    if (problem === null) yield ok(check, path ?? '');
    else yield { check, state: isNeeded ? 'failed' : 'warning', detail: problem };
  }
}

async function trustLists({ trust: settings }: Config) {
  try {
    const store = await TrustStore.open({ settings, log: new CollectedLog() });
    store.close();
    const names = Object.values(store.current.data).flatMap((lists: readonly TrustList[]) =>
      lists.map(({ name }) => name),
    );
    return { lists: store.current, findings: names.length === 0 ? [] : [ok('trust lists', names.join(', '))] };
  } catch (error) {
    return { lists: NO_TRUST_LISTS, findings: [failed('trust lists', error)] };
  }
}

async function signersOf(config: Config, launcher: Launcher, lists: TrustLists) {
  const log = new CollectedLog();
  try {
    const signers = await Signers.start({ config, launcher, log, trust: { current: lists } });
    const findings = warningsOf('identity', log);
    const fit = signers.identities.flatMap(({ name, subject, algorithm, notAfter }) => {
      const check = `identity ${name}`;
      const isFit = findings.every((finding) => finding.check !== check || finding.state !== 'failed');
      return isFit ? [ok(check, `${subject}; ${algorithm}; until ${notAfter}`)] : [];
    });
    return { signers, findings: [...fit, ...findings] };
  } catch (error) {
    return { findings: [failed('identity', error)] };
  }
}

/** Each authority signs for itself: the service would stop at the first that answers. */
async function* authorities({ signing }: Config, signers: Signers): AsyncGenerator<Finding> {
  const { tsa_timeout_ms: timeoutMs } = signing;
  const users = new Map(signers.identities.flatMap(({ name, tsaUrls }) => tsaUrls.map((url) => [url, name])));
  for (const [url, name] of users) {
    const check = `authority ${new URL(url).host}`;
    const problem = await probeSigning(signers, name, { urls: [url], timeoutMs, isRequired: true });
    if (problem === null) yield ok(check, 'gave a time-stamp');
    else yield { check, state: 'failed', detail: `${problem} Correct tsa_url, or take the address away` };
  }
}

async function storeOf({ jobs }: Config): Promise<{ readonly finding: Finding; readonly state: StoreState | null }> {
  try {
    const state = await probeStore(jobs);
    return { finding: ok('database', state.detail), state };
  } catch (error) {
    return { finding: failed('database', error), state: null };
  }
}

/** Uses folders and buckets as the service does while it waits for one. */
async function* dependencies(config: Config, probes: DependencyProbes): AsyncGenerator<Finding> {
  try {
    requireOptionalPackages(config);
  } catch (error) {
    return yield failed('optional packages', error);
  }
  const { input_resolvers: inputs, output_sinks: outputs, jobs } = config;
  const used: readonly (Dependency & { readonly name: string })[] = [
    ...(inputs.local.roots ?? []).map((name) => ({ kind: 'input_folder', name }) as const),
    ...(inputs.s3?.buckets ?? []).map((name) => ({ kind: 'input_bucket', name }) as const),
    ...(jobs.role === 'api' ? [] : (outputs.s3?.buckets ?? [])).map(
      (name) => ({ kind: 'output_bucket', name }) as const,
    ),
  ];
  for (const dependency of used) {
    const { kind, name } = dependency;
    const check = `${kind.replace('_', ' ')} ${name}`;
    const problem = await probes.problemOf(dependency);
    const done = kind === 'output_bucket' ? 'an object was written and deleted' : 'was listed';
    yield problem === null ? ok(check, done) : { check, state: 'failed', detail: problem };
  }
}

/** Compares the clock of this host with those of the authorities and of the database. */
async function* clocks(config: Config, store: StoreState | null): AsyncGenerator<Finding> {
  if (store?.nowMs != null) yield clock('database', store.nowMs - Date.now());
  for (const url of new Set(identitiesOf(config).flatMap(({ tsaUrls }) => tsaUrls))) {
    const offsetMs = await offsetOf(url);
    if (offsetMs !== null) yield clock(new URL(url).host, offsetMs);
  }
}

function clock(other: string, offsetMs: number): Finding {
  const check = `clock against ${other}`;
  const detail = `${Math.round(Math.abs(offsetMs) / 1000)} s ${offsetMs < 0 ? 'ahead' : 'behind'}`;
  if (Math.abs(offsetMs) <= MAX_CLOCK_OFFSET_MS) return ok(check, detail);
  return { check, state: 'warning', detail: `${detail}. Synchronise the clocks, such as with chrony` };
}

/** Returns by how much a server is ahead, from the `Date` of its answer (RFC 9110 §6.6.1); null where it does not say. */
async function offsetOf(address: string): Promise<number | null> {
  const url = Object.assign(new URL(address), { username: '', password: '' });
  try {
    const response = await fetch(url, {
      method: 'HEAD',
      redirect: 'manual',
      signal: AbortSignal.timeout(CLOCK_TIMEOUT_MS),
    });
    const serverMs = Date.parse(response.headers.get('date') ?? '');
    return Number.isNaN(serverMs) ? null : serverMs - Date.now();
  } catch {
    // The check of the authority has reported that it does not answer.
    return null;
  }
}
