import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Semaphore } from '#concurrency/semaphore.ts';
import { foldersAbove, nearestRealPath } from './path-overlap.ts';

/** The time after which a file system counts as hanging, in milliseconds. */
const BOUND_MS = 1_000;

/** A mounted file system. One call at a time uses it, so that it holds one thread of this process while it hangs. */
class FileSystemGate {
  readonly #calls = new Semaphore(1);
  #hangs = false;

  async run<T>(call: () => Promise<T>, otherwise: T): Promise<T> {
    if (this.#hangs) return otherwise;
    const elapsed = new AbortController();
    const called = this.#calls.run(call).finally(() => {
      this.#hangs = false;
      elapsed.abort();
    });
    const bound = sleep(BOUND_MS, otherwise, { signal: elapsed.signal }).then(
      (value) => {
        this.#hangs = true;
        return value;
      },
      () => called,
    );
    return await Promise.race([called, bound]);
  }
}

const gates = new Map<string, FileSystemGate>();

/**
 * Runs a call to the file system of a path, after those before it. Resolves with `otherwise` where the file system does not
 * answer in time, and at once from then on, until it does. A call within a call to the same file system would wait for itself.
 */
export function ifItAnswers<T>(path: string, call: () => Promise<T>, otherwise: T): Promise<T> {
  const mount = mountOf(resolve(path));
  const gate = gates.get(mount) ?? new FileSystemGate();
  gates.set(mount, gate);
  return gate.run(call, otherwise);
}

/** Returns what `nearestRealPath` does; the absolute path as it is given where its file system hangs. */
export function realPathIfItAnswers(path: string): Promise<string> {
  return ifItAnswers(path, () => nearestRealPath(path), resolve(path));
}

/** The time for which the list of mounts is cached, in milliseconds. */
const MOUNTS_CACHE_MS = 1_000;

let mounts: ReadonlySet<string> = new Set();
let mountsUntilMs = 0;

/** Returns where the file system of an absolute path is mounted, as its spelling tells. Never calls that file system. */
function mountOf(path: string): string {
  if (performance.now() >= mountsUntilMs) {
    mounts = new Set(mountPoints());
    mountsUntilMs = performance.now() + MOUNTS_CACHE_MS;
  }
  if (mounts.has(path)) return path;
  for (const folder of foldersAbove(path)) if (mounts.has(folder)) return folder;
  return '/';
}

/** Lists the mount points as proc(5) tells them, with spaces in octal. Other systems have no such file. */
function mountPoints(): readonly string[] {
  if (process.platform !== 'linux') return [];
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.map((line) => (line.split(' ')[4] ?? '').replaceAll(/\\(\d{3})/g, (_, octal: string) => charOf(octal)));
}

function charOf(octal: string): string {
  return String.fromCharCode(Number.parseInt(octal, 8));
}
