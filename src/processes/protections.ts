import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { findProgram } from './find-program.ts';

/** A protection that does not answer in this time counts as missing. */
const PROBE_TIMEOUT_MS = 10_000;

const MIB_BYTES = 1024 ** 2;

/** Limits of one process, enforced by the kernel (setrlimit(2)). */
export interface ProcessLimits {
  readonly openFiles: number;
  /** Private writable memory (RLIMIT_DATA): what stops a process that grows faster than it is watched. */
  readonly dataBytes: number;
}

/** Limits of processes that read media: far above what they need. */
export const MEDIA_PROCESS_LIMITS: ProcessLimits = { openFiles: 4096, dataBytes: 4096 * MIB_BYTES };

/**
 * Capabilities that a worker of root keeps: to read and write files of others, as before. Without CAP_SYS_PTRACE, and with fewer
 * than the service, it cannot read the memory of the service or the signer (ptrace(2)); without CAP_DAC_READ_SEARCH it
 * cannot open by handle what is hidden from it, without CAP_SYS_ADMIN not unmount it.
 */
const KEPT_CAPABILITIES = ['chown', 'dac_override', 'fowner', 'fsetid'] as const;

/** Whether processes run in a sandbox: where the system allows it, never, or else the service does not start. */
export type SandboxMode = 'auto' | 'off' | 'require';

/** A protection that this system lacks, and what to do. */
export interface MissingProtection {
  readonly protection: 'sandbox' | 'privileges' | 'limits';
  readonly problem: string;
  readonly remedy: string;
}

/** What the system offers to confine child processes. Each list holds words to put before a command; empty: not available. */
export interface Protections {
  /** The path of prlimit(1); null where it is not there. */
  readonly prlimit: string | null;
  /** setpriv(1) without new privileges, ended together with the service. */
  readonly setpriv: readonly string[];
  /** The same with fewer capabilities, where the service has any. */
  readonly setprivReduced: readonly string[];
  /** bwrap(1) with namespaces of its own; mounts are added for each process. */
  readonly bwrap: readonly string[];
  readonly missing: readonly MissingProtection[];
}

/** No protection at all; for tests of single parts. */
export const NO_PROTECTIONS: Protections = { prlimit: null, setpriv: [], setprivReduced: [], bwrap: [], missing: [] };

const run = promisify(execFile);

/** Finds out what this system offers, by using it. */
export async function probeProtections(mode: SandboxMode): Promise<Protections> {
  if (process.platform !== 'linux') return { ...NO_PROTECTIONS, missing: [notLinux()] };
  const [limits, privileges, sandbox] = await Promise.all([probeLimits(), probePrivileges(), probeSandbox(mode)]);
  const missing = [limits.missing, privileges.missing, sandbox.missing].filter((each) => each !== null);
  return { ...limits.found, ...privileges.found, bwrap: sandbox.words, missing };
}

async function probeLimits(): Promise<{ found: Pick<Protections, 'prlimit'>; missing: MissingProtection | null }> {
  const prlimit = findProgram('prlimit');
  const problem = prlimit === null ? NOT_INSTALLED : await problemOfRunning(limitWords(prlimit, MEDIA_PROCESS_LIMITS));
  if (problem === null) return { found: { prlimit }, missing: null };
  const remedy = 'Install util-linux (prlimit).';
  return { found: { prlimit: null }, missing: { protection: 'limits', problem, remedy } };
}

async function probePrivileges(): Promise<{
  found: Pick<Protections, 'setpriv' | 'setprivReduced'>;
  missing: MissingProtection | null;
}> {
  const setpriv = findProgram('setpriv');
  const words = setpriv === null ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--'];
  const problem = setpriv === null ? NOT_INSTALLED : await problemOfRunning(words);
  if (problem !== null) {
    const remedy = 'Install util-linux (setpriv) 2.33 or newer.';
    return { found: { setpriv: [], setprivReduced: [] }, missing: { protection: 'privileges', problem, remedy } };
  }
  const kept = KEPT_CAPABILITIES.map((name) => `+${name}`).join(',');
  const reduced = [
    ...words.slice(0, -1),
    '--inh-caps=-all',
    '--ambient-caps=-all',
    `--bounding-set=-all,${kept}`,
    '--',
  ];
  const isReducible = process.getuid?.() === 0 && (await problemOfRunning(reduced)) === null;
  return { found: { setpriv: words, setprivReduced: isReducible ? reduced : words }, missing: null };
}

async function probeSandbox(mode: SandboxMode): Promise<{ words: string[]; missing: MissingProtection | null }> {
  const missing = (problem: string, remedy: string) => ({
    words: [],
    missing: { protection: 'sandbox', problem, remedy } as const,
  });
  if (mode === 'off') return missing('worker.sandbox is "off"', 'Set worker.sandbox to "auto".');
  const bwrap = findProgram('bwrap');
  if (bwrap === null)
    return missing('bwrap is not installed', 'Install bubblewrap (on Debian: apt-get install bubblewrap).');
  let problem: string | null = null;
  // Where a container covers parts of /proc, none may be mounted anew; then the host's is seen, which without the rights
  // to its processes shows no more than their names.
  for (const proc of [OWN_PROC, []]) {
    const words = [bwrap, ...sandboxWords(), ...proc];
    problem = await problemOfRunning([...words, '--'], [process.execPath, '--version']);
    if (problem === null) return { words, missing: null };
  }
  return missing(problem ?? '', REMEDY_FOR_NAMESPACES);
}

/**
 * Settings of the kernel may be written by whoever has root's identifier, without any capability; bwrap 0.8 leaves
 * /proc/sys writable.
 */
const OWN_PROC = [
  '--proc',
  '/proc',
  ...['/proc/sys', '/proc/sysrq-trigger', '/proc/fs', '/proc/acpi', '/proc/scsi'].flatMap((path) => [
    '--ro-bind-try',
    path,
    path,
  ]),
];

/** bwrap sets no_new_privs by itself. For anybody but root it makes a user namespace, whose capabilities it drops. */
function sandboxWords(): string[] {
  const capabilities = KEPT_CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name.toUpperCase()}`]);
  return [
    '--unshare-pid',
    '--unshare-ipc',
    '--die-with-parent',
    ...(process.getuid?.() === 0 ? ['--cap-drop', 'ALL', ...capabilities] : []),
    ...['--ro-bind', '/', '/', '--dev', '/dev'],
  ];
}

/**
 * Returns the words that limit a command. No limit is raised. Core dumps are off: where the kernel hands them to a program
 * it ignores a limit of 0, and keeps to one of 1 (core(5), fs/coredump.c).
 */
export function limitWords(prlimit: string, { openFiles, dataBytes }: ProcessLimits): string[] {
  const files = Math.min(openFiles, hardLimitOf('Max open files'));
  const data = Math.min(dataBytes, hardLimitOf('Max data size'));
  return [prlimit, `--core=${coreLimit()}`, `--nofile=${files}`, `--data=${data}`, '--'];
}

export function coreLimit(): 0 | 1 {
  return textOf('/proc/sys/kernel/core_pattern').startsWith('|') ? 1 : 0;
}

function hardLimitOf(name: string): number {
  const line = textOf('/proc/self/limits')
    .split('\n')
    .find((each) => each.startsWith(name));
  const hard = line?.slice(name.length).trim().split(/\s+/)[1];
  return hard === undefined || hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

/** Whether the kernel lets a process read the memory of others of the same user (Yama, `ptrace_scope`); null: no Yama. */
export function ptraceScope(): number | null {
  const text = textOf('/proc/sys/kernel/yama/ptrace_scope');
  return text === '' ? null : Number(text);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // This kernel has no such setting.
    return '';
  }
}

/** Null where a harmless command runs with the words before it. */
async function problemOfRunning(
  words: readonly string[],
  command: readonly string[] = ['true'],
): Promise<string | null> {
  const [program, ...args] = [...words, ...command] as [string, ...string[]];
  try {
    await run(program, args, { timeout: PROBE_TIMEOUT_MS });
    return null;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    return (stderr?.trim() || message).split('\n')[0] ?? '';
  }
}

const NOT_INSTALLED = 'it is not installed';

const REMEDY_FOR_NAMESPACES =
  'Allow namespaces: user namespaces of an unprivileged user (sysctl user.max_user_namespaces, AppArmor), or in a container a seccomp profile that permits them.';

function notLinux(): MissingProtection {
  const remedy = 'Run the service on Linux where callers or media are not trusted.';
  return { protection: 'sandbox', problem: `${process.platform} has no namespaces`, remedy };
}
