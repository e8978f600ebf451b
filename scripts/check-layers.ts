// Checks that imports go down only, as ARCHITECTURE.md draws them. `node scripts/check-layers.ts [folder]` checks a
// source folder (`src` by default), prints each violation with file and line, and exits 1 where there is one.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** The rooms, uppermost first. A room may import from the rows below its own, never from its own row or from above. */
const ROWS = [
  ['main'],
  ['service', 'worker'],
  ['http'],
  ['jobs'],
  ['operations'],
  ['inputs', 'outputs', 'provenance', 'publications', 'packaging'],
  ['formats', 's3'],
  ['bytes'],
  ['contract', 'config', 'telemetry', 'processes'],
  ['errors'],
] as const;

/** Packages that one room alone may import. */
const OWNED_PACKAGES: readonly { readonly prefix: string; readonly room: string }[] = [
  { prefix: '@contentauth/', room: 'provenance' },
  { prefix: 'fastify', room: 'http' },
  { prefix: '@fastify/', room: 'http' },
  { prefix: '@aws-sdk/', room: 's3' },
  { prefix: 'mediabunny', room: 'packaging' },
  { prefix: 'shaka-packager', room: 'packaging' },
  { prefix: 'kysely', room: 'jobs' },
  { prefix: 'prom-client', room: 'telemetry' },
  { prefix: '@opentelemetry/', room: 'telemetry' },
  { prefix: 'node:sqlite', room: 'jobs' },
];

const IMPORT =
  /(?:^|[\s;}])(?:import|export)\s[^'";]*?from\s*['"]([^'"]+)['"]|(?:^|[\s;}])import\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/gm;

interface Violation {
  readonly file: string;
  readonly line: number;
  readonly problem: string;
}

const folder = process.argv[2] ?? 'src';
const violations = sourceFiles(folder).flatMap((path) => violationsOf(path));
for (const { file, line, problem } of violations) console.error(`${file}:${line}: ${problem}`);
if (violations.length > 0) process.exitCode = 1;
else console.log(`Imports go down only: ${sourceFiles(folder).length} files checked.`);

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(root, name));
}

function violationsOf(path: string): Violation[] {
  const source = readFileSync(path, 'utf8');
  const room = roomOf(relative(folder, path));
  return importsOf(source).flatMap(({ specifier, line }) => {
    const problem = problemOf(room, relative(folder, path), specifier);
    return problem === undefined ? [] : [{ file: path, line, problem }];
  });
}

/** Every import of a file, those of types included: a type from above is a dependency on what is above, too. */
function importsOf(source: string): { specifier: string; line: number }[] {
  return [...source.matchAll(IMPORT)].map((match) => ({
    specifier: match[1] ?? match[2] ?? match[3] ?? '',
    line: source.slice(0, match.index).split('\n').length + (match[0].startsWith('\n') ? 1 : 0),
  }));
}

function problemOf(room: string, file: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return problemOfRelative(room, file, specifier);
  if (specifier.startsWith('#')) return problemOfRoom(room, roomOf(specifier.slice(1)));
  const owner = OWNED_PACKAGES.find(({ prefix }) => specifier.startsWith(prefix))?.room;
  if (owner === undefined || owner === room) return undefined;
  return `only ${owner} may import ${specifier}`;
}

function problemOfRelative(room: string, file: string, specifier: string): string | undefined {
  const target = roomOf(join(file, '..', specifier));
  if (target === room) return undefined;
  return `"${specifier}" leaves the room ${room}: write it as "#…", from the source folder`;
}

function problemOfRoom(room: string, target: string): string | undefined {
  if (room === target) return undefined;
  const [from, to] = [rowOf(room), rowOf(target)];
  if (from === undefined) return `the room ${room} has no place in the layers of scripts/check-layers.ts`;
  if (to === undefined) return `the room ${target} has no place in the layers of scripts/check-layers.ts`;
  if (to > from) return undefined;
  return to === from ? `${room} and ${target} lie side by side` : `${room} lies below ${target}`;
}

function rowOf(room: string): number | undefined {
  const row = ROWS.findIndex((rooms) => (rooms as readonly string[]).includes(room));
  return row === -1 ? undefined : row;
}

/** The room of a path below the source folder: its first folder, or a root file's name without extension. */
function roomOf(path: string): string {
  return (path.split('/')[0] ?? '').replace(/\.ts$/, '');
}
