// `npm run build`: writes dist/, or the folder that is given: the published package without the packages that it bundles. Node strips
// types only outside of node_modules. Nothing in development needs it. Types become blanks, so that lines and columns in stack traces
// are those of the source.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { optionalPackages } from '#config/optional-packages.ts';
import { VENDOR_FILES, vendorFile } from '#config/vendor-files.ts';
import { bundledPackages, copiedPackages, ROOT } from './packages-of-release.ts';

const SOURCE = join(ROOT, 'src');
const CARRIED = [
  'README.md',
  'SECURITY.md',
  'ARCHITECTURE.md',
  'LICENSE',
  'CHANGELOG.md',
  'bin',
  'config/service.toml',
  'console',
  'docs',
  'deploy',
];

/** A path of the source in quotes: relative, or from the source folder. */
const SPECIFIER = /(['"])((?:#|\.{1,2}\/)[^'"\n]+)\.ts\1/g;

/** Replaces a folder by the published package without the packages that it bundles. */
export function build(target: string): void {
  rmSync(target, { recursive: true, force: true });
  for (const name of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.ts')) writeModule(name, target);
    else if (/\.[a-z]+$/.test(name)) carry(join('src', name), target);
  }
  for (const name of CARRIED) carry(name, target);
  for (const name of VENDOR_FILES) cpSync(vendorFile(name), join(target, 'vendor', name));
  for (const { path, name, licenseFiles } of copiedPackages()) {
    for (const file of licenseFiles) cpSync(join(ROOT, path, file), join(target, 'vendor/licences', name, file));
  }
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(publishedPackage(), null, 2)}\n`);
}

function writeModule(name: string, target: string): void {
  const path = join(target, 'src', name.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, stripTypeScriptTypes(readFileSync(join(SOURCE, name), 'utf8')).replace(SPECIFIER, '$1$2.js$1'));
}

function carry(name: string, target: string): void {
  cpSync(join(ROOT, name), join(target, name), { recursive: true });
}

/** Returns the package.json of the published package. It names the versions of the lock file: a tarball has none. */
function publishedPackage(): object {
  const { name, version, license, type, dependencies, imports } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  const direct = bundledPackages().filter(
    ({ path, name }) => path === join('node_modules', name) && name in dependencies,
  );
  const peers = optionalPackages();
  return {
    ...{ name, version, license, type, imports },
    engines: { node: '>=24' },
    bin: { attestream: 'bin/attestream.cjs' },
    dependencies: Object.fromEntries(direct.map(({ name, version }) => [name, version])),
    bundleDependencies: direct.map(({ name }) => name),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((peer) => [peer, { optional: true }])),
  };
}

if (import.meta.main) build(resolve(process.argv[2] ?? join(ROOT, 'dist')));
