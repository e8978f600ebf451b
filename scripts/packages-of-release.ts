import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { optionalPackages } from '#config/optional-packages.ts';
import { VENDOR_FILES, vendorFile } from '#config/vendor-files.ts';

export const ROOT = join(fileURLToPath(import.meta.url), '../..');

/** The package of the SDK. Its install script would download the addon that it holds. */
export const SDK = '@contentauth/c2pa-node';

/** Dependencies of the SDK apart from those that only its install script uses. */
const SDK_DEPENDENCIES = ['fs-extra', 'node-fetch'];

/** A package of the lock file, as the published package holds it. */
export interface ReleasedPackage {
  /** Path in a clone, relative to it. Nested packages have further folders `node_modules` in theirs. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  /** SPDX expression; null where the package names no licence. */
  readonly license: string | null;
  /** Paths of its texts of licences, relative to it. */
  readonly licenseFiles: readonly string[];
  /** Names of the copies in `vendor/`. None where all of the package is bundled. */
  readonly copies: readonly string[];
}

interface LockEntry {
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { optional?: boolean }>>;
}

const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)/i;
const MODULES = 'node_modules/';
const PACKAGE_FOLDER = /node_modules\/(?:@[^/]+\/)?[^/]+/;

const lock: Readonly<Record<string, LockEntry>> = JSON.parse(
  readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
).packages;

/** Returns the packages of which files are copied into `vendor/`. */
export function copiedPackages(): ReleasedPackage[] {
  const folders = Map.groupBy(VENDOR_FILES, (name) => PACKAGE_FOLDER.exec(vendorFile(name).pathname)?.[0] ?? '');
  return [...folders].map(([path, copies]) => describe(path, copies));
}

/** Returns the packages that are bundled: what production needs, apart from copied and optional packages and Node. */
export function bundledPackages(): ReleasedPackage[] {
  const apart = new Set(['node', ...Object.keys(optionalPackages()), ...copiedPackages().map(({ name }) => name)]);
  const found = new Set<string>();
  const add = (names: readonly string[], from: string): void => {
    for (const name of names) {
      const path = resolve(name, from);
      if (found.has(path)) continue;
      found.add(path);
      add(dependenciesOf(path), path);
    }
  };
  add(
    dependenciesOf('').filter((name) => !apart.has(name)),
    '',
  );
  return [...found].sort().map((path) => describe(path, []));
}

/** Returns the path of a package as Node resolves its name from another one, whose path is given. */
function resolve(name: string, from: string): string {
  const path = join(from, MODULES, name);
  if (path in lock) return path;
  if (from === '') throw new Error(`package-lock.json has no ${name}.`);
  const outer = from.lastIndexOf(`/${MODULES}`);
  return resolve(name, outer === -1 ? '' : from.slice(0, outer));
}

function dependenciesOf(path: string): string[] {
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = lock[path] as LockEntry;
  if (path === join(MODULES, SDK)) return SDK_DEPENDENCIES;
  const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true);
  return [...Object.keys(dependencies), ...peers];
}

function describe(path: string, copies: readonly string[]): ReleasedPackage {
  const { version, license = null } = lock[path] as LockEntry;
  const name = path.slice(path.lastIndexOf(MODULES) + MODULES.length);
  const licenseFiles = readdirSync(join(ROOT, path)).filter((file) => LICENSE_FILE.test(file));
  return { path, name, version, license, licenseFiles, copies };
}

/** The packager's programs for other platforms. */
const OTHER_PACKAGER = /\/shaka-packager\/bin\/(?!packager-linux-x64$)/;

/** Files that no program loads: source maps and declarations of types. */
const NEVER_LOADED = /\.(?:map|d\.[cm]?ts)$/;

/** Returns the files of a bundled package as paths in a clone, apart from those of packages inside it. */
export function filesOf({ path }: ReleasedPackage): string[] {
  const entries = readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(path, relative(join(ROOT, path), entry.parentPath), entry.name))
    .filter((file) => !file.startsWith(join(path, MODULES)))
    .filter((file) => !NEVER_LOADED.test(file) && !OTHER_PACKAGER.test(file))
    .sort();
}

/** Returns the package.json of the SDK without its scripts, and with the dependencies that it needs. */
export function sdkManifest(): object {
  const path = join(ROOT, MODULES, SDK, 'package.json');
  const { scripts: _, devDependencies: __, dependencies, ...rest } = JSON.parse(readFileSync(path, 'utf8'));
  return { ...rest, dependencies: Object.fromEntries(SDK_DEPENDENCIES.map((name) => [name, dependencies[name]])) };
}
