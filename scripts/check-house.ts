// Checks house rules that no linter knows: telling file names, files of a readable length, nothing left undone and no
// test switched off. `node scripts/check-house.ts [folder…]` prints each violation and exits 1 where there is one.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const FOLDERS = ['src', 'test', 'scripts', 'bench'];
const MAX_LINES = 400;

/** A file with such a name says nothing of what is in it, and fills up with whatever found no place. */
const VAGUE_NAME = /^(utils?|helpers?|common|misc|manager)\b|-(utils?|helpers?|manager)\b/;

/** Put together from pieces, so that this file passes its own check. */
const FORBIDDEN: readonly { readonly pattern: RegExp; readonly problem: string }[] = [
  {
    pattern: new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`),
    problem: 'something is left undone',
  },
  { pattern: /\b(?:test|it|describe|suite|t)\.(?:skip|only|todo)\(/, problem: 'a test is switched off' },
  { pattern: /[{,]\s*(?:skip|only|todo):/, problem: 'a test is switched off' },
];

const folders = process.argv.length > 2 ? process.argv.slice(2) : FOLDERS;
const files = folders.flatMap(sourceFiles);
const problems = files.flatMap(problemsOf);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
else console.log(`House rules hold: ${files.length} files checked.`);

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.m?ts$|\.mjs$/.test(name))
    .map((name) => join(root, name));
}

function problemsOf(path: string): string[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const found: string[] = [];
  if (VAGUE_NAME.test(basename(path))) found.push(`${path}: the name does not tell what is in the file`);
  if (lines.length > MAX_LINES) found.push(`${path}: ${lines.length} lines, ${MAX_LINES} are the most`);
  for (const [index, line] of lines.entries()) {
    for (const { pattern, problem } of FORBIDDEN) {
      if (pattern.test(line)) found.push(`${path}:${index + 1}: ${problem}: ${line.trim()}`);
    }
  }
  return found;
}
