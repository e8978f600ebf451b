// `npm run docs`: writes console/shared, the modules of the service that browsers run too: what a report means is said by one
// piece of code. A test fails where they are not what this writes.
import { readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename } from 'node:path';

const TARGET = new URL('../console/shared/', import.meta.url);
const SOURCES = [
  'formats/isobmff/excluded-boxes.ts',
  'formats/isobmff/merkle-box.ts',
  'provenance/algorithm-name.ts',
  'provenance/describe-identities.ts',
  'provenance/describe-report.ts',
  'provenance/status-codes.ts',
  'provenance/validation-report.ts',
  'operations/verification/summarize.ts',
  'publications/presentation/compare-presentation.ts',
  'publications/presentation/presentation.ts',
  'errors/assert.ts',
  'publications/verification/verify-sequence.ts',
];

/** Returns the modules as JavaScript, by their names. */
export function consoleModules(): ReadonlyMap<string, string> {
  return new Map(SOURCES.map((path) => [basename(path).replace(/\.ts$/, '.js'), moduleOf(path)]));
}

function moduleOf(path: string): string {
  const source = readFileSync(new URL(`../src/${path}`, import.meta.url), 'utf8');
  const code = stripTypeScriptTypes(source)
    .replace(/(['"])(?:\.|#\w+)(\/[^'"\n]+)\.ts\1/g, '$1.$2.js$1')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trimStart();
  return `// @ts-nocheck\n// Written by "npm run docs" from src/${path}: change that.\n${code}`;
}

if (import.meta.main) {
  for (const [name, code] of consoleModules()) writeFileSync(new URL(name, TARGET), code);
}
