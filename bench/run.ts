// `npm run bench`: measures speed and memory against the floor and against the SDK alone, side by side in one run, and
// prints a Markdown report; it also lies in .artifacts/bench-report.md. `npm run bench -- video publications` chooses
// parts, `--rounds 7` how often each is measured, `--docs` puts the report into docs/benchmarks.md. `--against DIR` compares this
// version with the checkout in a folder instead. BENCH_DIR names the folder (and so the disk) that is worked in: it needs
// 20 GB. Whatever else the machine does meanwhile is in the numbers.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { compareWith } from './against.ts';
import { audioPart } from './audio-part.ts';
import { type BenchPart, openContext } from './bench-context.ts';
import { consolePart } from './console-part.ts';
import { jobsPart } from './jobs-part.ts';
import { linearPart } from './linear-part.ts';
import { progress } from './measuring.ts';
import { packagingPart } from './packaging-part.ts';
import { playbackPart } from './playback-part.ts';
import { publicationsPart } from './publications-part.ts';
import { machine } from './report.ts';
import { s3Part } from './s3-part.ts';
import { verifyPart } from './verify-part.ts';
import { videoPart } from './video-part.ts';

const PARTS: Readonly<Record<string, BenchPart>> = {
  video: videoPart,
  audio: audioPart,
  linear: linearPart,
  publications: publicationsPart,
  verify: verifyPart,
  packaging: packagingPart,
  s3: s3Part,
  playback: playbackPart,
  jobs: jobsPart,
  console: consolePart,
};
const DEFAULT_ROUNDS = 5;
const ROOT = join(fileURLToPath(import.meta.url), '../..');
const ARTIFACTS = join(ROOT, '.artifacts');
/** The page that `--docs` puts the report into, and where in it. */
const MARKED = /(<!-- measurements -->\n)[\s\S]*(\n<!-- \/measurements -->)/;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string' }, docs: { type: 'boolean' }, against: { type: 'string' } },
});
const names = positionals.length === 0 ? Object.keys(PARTS) : positionals;
const rounds = Number(values.rounds ?? DEFAULT_ROUNDS);
const unknown = names.filter((name) => !Object.hasOwn(PARTS, name));
if (unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
  console.error(`Parts are ${Object.keys(PARTS).join(', ')}; --rounds takes a whole number.`);
  process.exit(2);
}

const folder = join(process.env['BENCH_DIR'] ?? ARTIFACTS, 'bench');
const sections = [`Measured on ${machine()}. Medians; random bytes; every output synced to the disk.`];
try {
  const { against } = values;
  if (against !== undefined) sections.push(await compareWith(resolve(against), names, openContext(folder, rounds)));
  else await measureParts();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const report = `${sections.join('\n\n')}\n`;
mkdirSync(ARTIFACTS, { recursive: true });
writeFileSync(join(ARTIFACTS, 'bench-report.md'), report);
progress('');
console.log(report);
if (values.docs === true) putIntoPage(report);

async function measureParts(): Promise<void> {
  for (const name of names) {
    progress(`part ${name}`);
    const section = await PARTS[name]?.(openContext(folder, rounds));
    if (section !== undefined) sections.push(section);
  }
}

function putIntoPage(text: string): void {
  const page = join(ROOT, 'docs/benchmarks.md');
  const old = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    old.replace(MARKED, (_, before: string, after: string) => `${before}\n${text}${after}`),
  );
}
