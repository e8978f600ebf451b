// A bare loop that copies a folder's files durably and does nothing else: each is read whole, written, and synced,
// sixteen at once. `node bench/copy-loop.ts IN OUT` prints milliseconds.
import { mkdir, open, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const FILES_AT_ONCE = 16;

const [from = '', to = ''] = process.argv.slice(2);
const entries = await readdir(from, { recursive: true, withFileTypes: true });
const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
const folders = new Set(files.map((file) => dirname(targetOf(file))));

const startedAt = performance.now();
for (const folder of folders) await mkdir(folder, { recursive: true });
const turns = files.values();
await Promise.all(Array.from({ length: FILES_AT_ONCE }, takeTurns));
for (const folder of folders) await syncFolder(folder);
console.log(performance.now() - startedAt);

async function takeTurns(): Promise<void> {
  for (const file of turns) await copy(file, targetOf(file));
}

function targetOf(file: string): string {
  return join(to, file.slice(from.length));
}

async function copy(file: string, target: string): Promise<void> {
  await using source = await open(file);
  const { size } = await source.stat();
  const bytes = Buffer.allocUnsafe(size);
  await source.read(bytes, 0, size, 0);
  await using copied = await open(target, 'wx');
  await copied.write(bytes, 0, size, 0);
  await copied.sync();
}

async function syncFolder(folder: string): Promise<void> {
  await using handle = await open(folder);
  await handle.sync();
}
