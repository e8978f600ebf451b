// `npm run build`: emits dist/ as JavaScript, to publish. Nothing in development needs it.
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(fileURLToPath(import.meta.url), '../..');
const DIST = join(ROOT, 'dist');

rmSync(DIST, { recursive: true, force: true });
const options = ['--noEmit', 'false', '--rewriteRelativeImportExtensions', '--rootDir', 'src', '--outDir', 'dist'];
execFileSync('tsc', ['--project', 'tsconfig.build.json', ...options], { cwd: ROOT, stdio: 'inherit' });
for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md', 'config/service.toml'])
  cpSync(join(ROOT, name), join(DIST, name));
writeFileSync(join(DIST, 'package.json'), `${JSON.stringify(publishedPackage(), null, 2)}\n`);

/** The package as it is published: what runs, and what that needs. Specifiers keep their ".ts"; the map takes it off. */
function publishedPackage(): object {
  const { name, version, license, type, dependencies, overrides } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  );
  return {
    name,
    version,
    license,
    type,
    bin: { [name]: 'main.js' },
    imports: { '#*.ts': './*.js' },
    dependencies,
    overrides,
  };
}
