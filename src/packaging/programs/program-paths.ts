import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isExecutable } from '#processes/find-program.ts';

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
