// A bare loop that reads the files of a folder, hashes each, and does nothing else. `node bench/hash-loop.ts FOLDER`
// prints milliseconds.
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const entries = readdirSync(process.argv[2] ?? '', { recursive: true, withFileTypes: true });
const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));

const startedAt = performance.now();
for (const file of files) hash('sha256', readFileSync(file));
console.log(performance.now() - startedAt);
