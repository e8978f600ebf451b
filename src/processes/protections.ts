import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { findProgram } from './find-program.ts';

/** A protection whose probe takes longer counts as missing. */
const PROBE_TIMEOUT_MS = 60_000;

const MIB_BYTES = 1024 ** 2;

/** Limits of one process, enforced by the kernel (setrlimit(2)). */
export interface ProcessLimits {
  readonly openFiles: number;
  /** Private writable memory (RLIMIT_DATA). Stops a process that grows faster than its memory is sampled. */
  readonly dataBytes: number;
}

/** Limits of processes that read media, far above their needs. */
export const MEDIA_PROCESS_LIMITS: ProcessLimits = { openFiles: 4096, dataBytes: 4096 * MIB_BYTES };

/**
 * Capabilities that a worker of root keeps: to read and write files of others, as before. Without CAP_SYS_PTRACE, and
 * with fewer than the service, it cannot read the memory of the service or the signer (ptrace(2)); without
 * CAP_DAC_READ_SEARCH it cannot open by handle what is hidden from it, without CAP_SYS_ADMIN not unmount it.
 */
const KEPT_CAPABILITIES = ['chown', 'dac_override', 'fowner', 'fsetid'] as const;

/** The use of a sandbox: where the system allows it; never; or required, without which the service does not start. */
type SandboxMode = 'auto' | 'off' | 'require';

/** A protection that this system lacks, with its remedy. */
interface MissingProtection {
  readonly protection: 'sandbox' | 'privileges' | 'limits';
  readonly problem: string;
  readonly remedy: string;
}

/** The means of the system to confine child processes. Each list is a prefix of a command; empty: not available. */
export interface Protections {
  /** The path of prlimit(1); null where it is not available. */
  readonly prlimit: string | null;
  /** setpriv(1) with no_new_privs and a parent-death signal. */
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

/** Probes the protections of this system by using each. */
export async function probeProtections(mode: SandboxMode): Promise<Protections> {
  if (process.platform !== 'linux') return { ...NO_PROTECTIONS, missing: [notLinux()] };
  const [limits, privileges, sandbox] = await Promise.all([probeLimits(), probePrivileges(), probeSandbox(mode)]);
  const missing = [limits.missing, privileges.missing, sandbox.missing].filter((each) => each !== null);
  return { ...limits.found, ...privileges.found, bwrap: sandbox.prefix, missing };
}

let cachedProgramPrefix: Promise<readonly string[]> | undefined;

/**
 * Returns the prefix of commands that start a foreign program from a worker: limits of the kernel, no_new_privs, and a
 * parent-death signal, so that the program exits with the worker. It runs in the sandbox of the worker. If the system
 * lacks these protections the prefix is empty; a program that outlives its worker exits when it finds its folders gone.
 */
export function programPrefix(): Promise<readonly string[]> {
  cachedProgramPrefix ??= probeProgramPrefix();
  return cachedProgramPrefix;
}

async function probeProgramPrefix(): Promise<readonly string[]> {
  const { prlimit, setpriv } = await probeProtections('off');
  return [...(prlimit === null ? [] : limitPrefix(prlimit, MEDIA_PROCESS_LIMITS)), ...setpriv];
}

async function probeLimits(): Promise<{ found: Pick<Protections, 'prlimit'>; missing: MissingProtection | null }> {
  const prlimit = findProgram('prlimit');
  const problem = prlimit === null ? NOT_INSTALLED : await problemOfRunning(limitPrefix(prlimit, MEDIA_PROCESS_LIMITS));
  if (problem === null) return { found: { prlimit }, missing: null };
  const remedy = 'Install util-linux (prlimit).';
  return { found: { prlimit: null }, missing: { protection: 'limits', problem, remedy } };
}

async function probePrivileges(): Promise<{
  found: Pick<Protections, 'setpriv' | 'setprivReduced'>;
  missing: MissingProtection | null;
}> {
  const setpriv = findProgram('setpriv');
  const prefix = setpriv === null ? [] : [setpriv, '--no-new-privs', '--pdeathsig', 'KILL', '--'];
  const problem = setpriv === null ? NOT_INSTALLED : await problemOfRunning(prefix);
  if (problem !== null) {
    const remedy = 'Install util-linux (setpriv) 2.33 or newer.';
    return { found: { setpriv: [], setprivReduced: [] }, missing: { protection: 'privileges', problem, remedy } };
  }
  const kept = KEPT_CAPABILITIES.map((name) => `+${name}`).join(',');
  const reduced = [
    ...prefix.slice(0, -1),
    '--inh-caps=-all',
    '--ambient-caps=-all',
    `--bounding-set=-all,${kept}`,
    '--',
  ];
  const isReducible = process.getuid?.() === 0 && (await problemOfRunning(reduced)) === null;
  return { found: { setpriv: prefix, setprivReduced: isReducible ? reduced : prefix }, missing: null };
}

async function probeSandbox(mode: SandboxMode): Promise<{ prefix: string[]; missing: MissingProtection | null }> {
  const missing = (problem: string, remedy: string) => ({
    prefix: [],
    missing: { protection: 'sandbox', problem, remedy } as const,
  });
  if (mode === 'off') return missing('worker.sandbox is "off"', 'Set worker.sandbox to "auto".');
  const bwrap = findProgram('bwrap');
  if (bwrap === null)
    return missing('bwrap is not installed', 'Install bubblewrap (on Debian: apt-get install bubblewrap).');
  let problem: string | null = null;
  // A container that covers parts of /proc allows no new mount of it. The process then sees that of the host, which shows no
  // more than the names of processes that it has no rights to.
  for (const proc of [OWN_PROC, []]) {
    const prefix = [bwrap, ...sandboxArguments(), ...proc];
    problem = await problemOfRunning([...prefix, '--'], [process.execPath, '--version']);
    if (problem === null) return { prefix, missing: null };
  }
  return missing(problem ?? '', REMEDY_FOR_NAMESPACES);
}

/** Mounts a new /proc. Root may write settings of the kernel there without any capability, and bwrap 0.8 leaves them writable. */
const OWN_PROC = [
  '--proc',
  '/proc',
  ...['/proc/sys', '/proc/sysrq-trigger', '/proc/fs', '/proc/acpi', '/proc/scsi'].flatMap((path) => [
    '--ro-bind-try',
    path,
    path,
  ]),
];

/**
 * Returns the arguments of bwrap, which sets no_new_privs by itself. For anybody but root it makes a user namespace,
 * whose capabilities it drops.
 */
function sandboxArguments(): string[] {
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
 * Returns the prefix that limits a command. No limit is raised. Core dumps are disabled: where the kernel pipes them to a
 * program it ignores a limit of 0, but not one of 1 (core(5), fs/coredump.c).
 */
export function limitPrefix(prlimit: string, { openFiles, dataBytes }: ProcessLimits): string[] {
  const files = Math.min(openFiles, hardLimitOf('Max open files'));
  const data = Math.min(dataBytes, hardLimitOf('Max data size'));
  return [prlimit, `--core=${coreLimit()}`, `--nofile=${files}`, `--data=${data}`, '--'];
}

/** Returns the limit that disables core dumps. */
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

/** Returns Yama's `ptrace_scope`: 0 lets a process read the memory of others of the same user. Null without Yama. */
export function ptraceScope(): number | null {
  const text = textOf('/proc/sys/kernel/yama/ptrace_scope');
  return text === '' ? null : Number(text);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // This kernel has no such file.
    return '';
  }
}

/** Runs a harmless command with a prefix. Returns null where it succeeds, else the problem. */
async function problemOfRunning(
  prefix: readonly string[],
  command: readonly string[] = ['true'],
): Promise<string | null> {
  const [program, ...args] = [...prefix, ...command] as [string, ...string[]];
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
  'Allow namespaces: user namespaces of an unprivileged user (sysctl user.max_user_namespaces, AppArmor); in a container "--security-opt seccomp=unconfined --security-opt apparmor=unconfined", in Kubernetes seccompProfile and appArmorProfile of type Unconfined, or profiles that permit namespaces and mounts.';

function notLinux(): MissingProtection {
  const remedy = 'Run the service on Linux where callers or media are not trusted.';
  return { protection: 'sandbox', problem: `${process.platform} has no namespaces`, remedy };
}
