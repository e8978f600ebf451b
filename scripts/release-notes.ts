// `npm run release:notes -- VERSION [--date YYYY-MM-DD]`: moves the files of changelog/unreleased into CHANGELOG.md, under the version and
// its date, and sets the version of the package. Prints what is left to do.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** The sections of a release, each with the start of the names of its files (https://keepachangelog.com/en/1.1.0/). */
const SECTIONS = ['added', 'changed', 'deprecated', 'removed', 'fixed', 'security'] as const;
const VERSION = /^\d+\.\d+\.\d+$/;
const LAST_RELEASE = /^## /m;

/** A change that no release has: the name of its file, such as `fixed-empty-folders.md`, and its text. */
export interface Change {
  readonly name: string;
  readonly text: string;
}

/** Returns the changelog with a further release in front of the others. Throws for a file whose name begins with no section. */
export function withRelease(changelog: string, title: string, changes: readonly Change[]): string {
  const stray = changes.find(({ name }) => !SECTIONS.some((section) => name.startsWith(`${section}-`)));
  if (stray !== undefined) throw new Error(`${stray.name}: the name has to begin with one of ${SECTIONS.join(', ')}.`);
  const sections = SECTIONS.flatMap((section) => {
    const own = changes.filter(({ name }) => name.startsWith(`${section}-`));
    const heading = `### ${section.charAt(0).toUpperCase()}${section.slice(1)}`;
    return own.length === 0 ? [] : [`${heading}\n\n${own.map(itemOf).join('\n')}\n`];
  });
  const release = `## ${title}\n\n${sections.join('\n')}\n`;
  const { index = changelog.length } = LAST_RELEASE.exec(changelog) ?? {};
  return changelog.slice(0, index) + release + changelog.slice(index);
}

function itemOf({ text }: Change): string {
  return `- ${text.trim().replaceAll('\n', '\n  ')}`;
}

function release(root: string, version: string, date: string): void {
  const folder = join(root, 'changelog', 'unreleased');
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'));
  const changes = names.sort().map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }));
  const file = join(root, 'CHANGELOG.md');
  writeFileSync(file, withRelease(readFileSync(file, 'utf8'), `${version} (${date})`, changes));
  for (const name of names) rmSync(join(folder, name));
  execFileSync('npm', ['version', version, '--no-git-tag-version'], { cwd: root, stdio: 'inherit' });
  console.log(`Read CHANGELOG.md, then: git commit -am "release ${version}" && git tag v${version}`);
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { date: { type: 'string' } } });
  const [version = ''] = positionals;
  if (!VERSION.test(version)) {
    console.error('Name the version, such as: npm run release:notes -- 0.2.0');
    process.exit(2);
  }
  release(process.cwd(), version, values.date ?? new Date().toISOString().slice(0, 10));
}
