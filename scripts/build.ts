// `npm run build`: writes dist/, or the folder that is given, as JavaScript, to publish: Node strips types only outside of node_modules. Nothing in
// development needs it. Types become blanks, so that lines and columns in stack traces are those of the source.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(fileURLToPath(import.meta.url), '../..');
const SOURCE = join(ROOT, 'src');
const DIST = resolve(process.argv[2] ?? join(ROOT, 'dist'));
const CARRIED = [
  'README.md',
  'SECURITY.md',
  'ARCHITECTURE.md',
  'LICENSE',
  'CHANGELOG.md',
  'config/service.toml',
  'console',
  'docs',
  'deploy',
];

/** A path of the source in quotes: relative, or from the source folder. */
const SPECIFIER = /(['"])((?:#|\.{1,2}\/)[^'"\n]+)\.ts\1/g;

rmSync(DIST, { recursive: true, force: true });
for (const name of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.ts')) writeModule(name);
  else if (/\.[a-z]+$/.test(name)) carry(join('src', name));
}
for (const name of CARRIED) carry(name);
writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(publishedPackage(), null, 2)}\n`);

function writeModule(name: string): void {
  const target = join(DIST, 'src', name.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, stripTypeScriptTypes(readFileSync(join(SOURCE, name), 'utf8')).replace(SPECIFIER, '$1$2.js$1'));
}

function carry(name: string): void {
  cpSync(join(ROOT, name), join(DIST, name), { recursive: true });
}

/** The package as it is published: what runs, and what that needs. */
function publishedPackage(): object {
  const { name, version, license, type, dependencies, optionalDependencies, overrides, imports } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  const scripts = { start: 'node src/main.js' };
  return { name, version, license, type, scripts, imports, dependencies, optionalDependencies, overrides };
}
