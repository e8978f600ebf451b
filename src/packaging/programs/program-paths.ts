import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { AppError } from '#errors/app-error.ts';

/** The names that the packager's npm package gives to platforms. */
const PLATFORMS: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'osx', win32: 'win' };

/**
 * The packager's own program. The package's entry point is passed by: it ends with 0 whatever happens. Throws
 * PACKAGER_MISSING where there is none for this platform.
 */
export function findPackager(): string {
  const platform = `${PLATFORMS[process.platform] ?? process.platform}-${process.arch}`;
  const folder = dirname(createRequire(import.meta.url).resolve('shaka-packager/package.json'));
  const path = join(folder, 'bin', `packager-${platform}${process.platform === 'win32' ? '.exe' : ''}`);
  if (!isExecutable(path)) throw new AppError('PACKAGER_MISSING', { path, platform });
  return path;
}

/** The path of a program on the service's PATH; null where it is not installed. */
export function findProgram(name: string): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(isAbsolute);
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // There is none, or it may not be run: it is as if it were not there.
    return false;
  }
}

/** A trial that takes longer, in milliseconds, has failed. */
const TRIAL_TIMEOUT_MS = 5_000;

let leash: Promise<readonly string[]> | undefined;

/**
 * What is put before a program so that the kernel ends it together with this process, however that ends: util-linux's
 * setpriv, on Linux. Elsewhere nothing: a program that outlives its worker ends when it finds its folders gone.
 */
export function deathLeash(): Promise<readonly string[]> {
  leash ??= tryLeash();
  return leash;
}

async function tryLeash(): Promise<readonly string[]> {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : null;
  const nothing = findProgram('true');
  if (setpriv === null || nothing === null) return [];
  const words = [setpriv, '--pdeathsig', 'KILL', '--'];
  return await new Promise((resolve) => {
    execFile(setpriv, [...words.slice(1), nothing], { timeout: TRIAL_TIMEOUT_MS }, (error) =>
      resolve(error === null ? words : []),
    );
  });
}
