// Checks conventions that the linter has no rule for: telling file names, nothing left undone, no test switched off, and tables
// that are maps.
// `node scripts/check-conventions.ts [folder…]` prints each violation and exits 1 where there is one.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const FOLDERS = ['src', 'console', 'test', 'scripts', 'bench'];

/** Names that say nothing of what is in a file, which then collects whatever has no home. */
const VAGUE_NAME = /^(utils?|helpers?|common|misc|manager)\b|-(utils?|helpers?|manager)\b/;

/** Put together from pieces, so that this file passes its own check. */
const FORBIDDEN: readonly { readonly pattern: RegExp; readonly problem: string; readonly except?: RegExp }[] = [
  {
    pattern: new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`, 'g'),
    problem: 'something is left undone',
  },
  { pattern: /\b(?:test|it|describe|suite|t)\.(?:skip|only|todo)\(/g, problem: 'a test is switched off' },
  { pattern: /[{,]\s*(?:skip|only|todo):/g, problem: 'a test is switched off' },
  {
    pattern:
      /^(?:(?:export )?const \w+(?:: | = \/\*\* @type \{)|(?:\/\*\*| \*).*@type \{)(?:\w+<\s*)*Record<string\b/gm,
    problem: 'a name such as "constructor" finds in this object what every object has; make it a ReadonlyMap',
    // Their tables are looked up by names of their own.
    except: /^(?:test|scripts|bench)\//,
  },
];

const folders = process.argv.length > 2 ? process.argv.slice(2) : FOLDERS;
const files = folders.flatMap(sourceFiles);
const problems = files.flatMap(problemsOf);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`Conventions hold: ${files.length} files checked.`);

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.m?[jt]s$/.test(name))
    .map((name) => join(root, name));
}

function problemsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  const found: string[] = [];
  if (VAGUE_NAME.test(basename(path))) found.push(`${path}: the name does not tell what is in the file`);
  for (const { pattern, problem } of FORBIDDEN.filter(({ except }) => except?.test(path) !== true)) {
    for (const { 0: match, index } of text.matchAll(pattern)) {
      found.push(`${path}:${text.slice(0, index).split('\n').length}: ${problem}: ${match.trim()}`);
    }
  }
  return found;
}
