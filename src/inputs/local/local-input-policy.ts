import { homedir } from 'node:os';
import { relative, sep } from 'node:path';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import { nearestRealPath } from '#bytes/real-path.ts';
import { isInStaging } from '#bytes/staged-name.ts';
import type { Config } from '#config/config.ts';
import { protectedPaths } from '#config/protected-paths.ts';
import { AppError } from '#errors/app-error.ts';

/** The folders that local inputs are read from. Paths may be relative to the working directory, and need not exist. */
export interface LocalInputPolicy {
  /** Folders that inputs must lie in, after resolving links; undefined: anywhere but the places of the system. */
  readonly roots: readonly string[] | undefined;
  /** Files and folders of the service itself, which are refused even inside a root. */
  readonly protectedPaths: readonly string[];
}

/** System folders, which hold nobody's media. */
const SYSTEM_FOLDERS = ['/etc', '/proc', '/sys', '/dev', '/boot', '/run', '/var/lib', '/var/log'] as const;

/** The policy that a configuration asks for; `configFile` is where it stands, which is protected too. */
export function localInputPolicy(config: Config, configFile: string): LocalInputPolicy {
  return { roots: config.input_resolvers.local.roots, protectedPaths: protectedPaths(config, configFile) };
}

/**
 * Throws unless what is at a path, whose links are resolved, may be read. `path` is how the caller is told of it, for
 * the message.
 */
export type RealPathCheck = (path: string, realPath: string) => void;

/** Time, in milliseconds, for which the resolved paths of a policy are cached. */
const RESOLVED_CACHE_MS = 1000;

const resolvedChecks = new WeakMap<
  LocalInputPolicy,
  { readonly check: Promise<RealPathCheck>; readonly untilMs: number }
>();

/** The check that a policy asks for. Its places are resolved at most once a second: thousands of inputs share them. */
export function realPathCheck(policy: LocalInputPolicy): Promise<RealPathCheck> {
  const known = resolvedChecks.get(policy);
  if (known !== undefined && performance.now() < known.untilMs) return known.check;
  const check = resolveCheck(policy);
  resolvedChecks.set(policy, { check, untilMs: performance.now() + RESOLVED_CACHE_MS });
  return check;
}

async function resolveCheck(policy: LocalInputPolicy): Promise<RealPathCheck> {
  const roots = policy.roots === undefined ? undefined : await Promise.all(policy.roots.map(nearestRealPath));
  const own = await Promise.all(policy.protectedPaths.map(nearestRealPath));
  return (path, realPath) => {
    if (roots !== undefined && !liesInAny(realPath, roots)) throw new AppError('SOURCE_OUTSIDE_ROOTS', { path });
    if (isInStaging(realPath) || liesInAny(realPath, own)) throw new AppError('SOURCE_PROTECTED', { path });
    const place = roots === undefined ? systemFolderOf(realPath) : undefined;
    if (place !== undefined) throw new AppError('SOURCE_IN_SYSTEM_PLACE', { path, place });
  };
}

/** Returns the system folder that a path lies in, if any: one of a list, or a hidden folder of a home folder. */
function systemFolderOf(realPath: string): string | undefined {
  return SYSTEM_FOLDERS.find((place) => isSameOrInside(realPath, place)) ?? hiddenHomeFolderOf(realPath);
}

function hiddenHomeFolderOf(realPath: string): string | undefined {
  for (const home of ['/root', homedir(), homeAbove(realPath)]) {
    if (home === undefined || home === '/' || !isSameOrInside(realPath, home)) continue;
    const [first] = relative(home, realPath).split(sep);
    if (first?.startsWith('.')) return `${home}/${first}`;
  }
  return undefined;
}

/** `/home/<user>` for a path inside it. */
function homeAbove(realPath: string): string | undefined {
  return /^\/home\/[^/]+/.exec(realPath)?.[0];
}

function liesInAny(realPath: string, places: readonly string[]): boolean {
  return places.some((place) => isSameOrInside(realPath, place));
}
