// `npm run structure`: prints figures about the structure of the source tree as Markdown: files, lines of code, files
// with exactly one importer, and the files that run while one video is signed. `npm run structure -- DIR` measures
// another checkout, so that two versions can be compared.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join, normalize, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { startService } from './running-service.ts';

const OWN_ROOT = join(fileURLToPath(import.meta.url), '../..');
const root = resolve(process.argv[2] ?? OWN_ROOT);
const FOLDER = join(OWN_ROOT, '.artifacts/structure');
/** Long enough for every process to write what it ran. */
const COVERAGE_WAIT_MS = 1000;
const IMPORT = /(?:from|import)\s*\(?\s*'([^']+)'/g;

/** One file of the source tree; paths are relative to `src`. */
interface SourceFile {
  readonly path: string;
  readonly codeLines: number;
  readonly imports: readonly string[];
}

/** Coverage as V8 writes it: counts of ranges for each function of each script. */
interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly count: number }[];
    }[];
  }[];
}

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource);
const importers = new Map<string, number>();
for (const { imports } of files) for (const path of imports) importers.set(path, (importers.get(path) ?? 0) + 1);
const sizes = files.map(({ codeLines }) => codeLines).toSorted((one, other) => one - other);

print([
  ['source files', files.length],
  ['lines of code, without comments and blank lines', sizes.reduce((sum, size) => sum + size, 0)],
  ['median lines of code of a file', sizes[Math.floor(sizes.length / 2)] ?? 0],
  ['files with exactly one importer', files.filter(({ path }) => importers.get(path) === 1).length],
  ['files that run while one video is signed, in all processes', (await filesRunByVideo()).size],
]);

function readSource(path: string): SourceFile {
  const text = readFileSync(join(root, 'src', path), 'utf8');
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').split('\n');
  const specifiers = new Set([...text.matchAll(IMPORT)].map(([, specifier = '']) => specifier));
  return {
    path,
    codeLines: code.filter((line) => !/^\s*(\/\/.*)?$/.test(line)).length,
    imports: [...specifiers].flatMap((specifier) => {
      if (specifier.startsWith('#')) return [normalize(specifier.slice(1))];
      return specifier.startsWith('.') ? [join(dirname(path), specifier)] : [];
    }),
  };
}

/** Signs a video twice, and returns the source files of which a function ran during the second time. */
async function filesRunByVideo(): Promise<Set<string>> {
  rmSync(FOLDER, { recursive: true, force: true });
  const coverage = join(FOLDER, 'coverage');
  mkdirSync(coverage, { recursive: true });
  await using service = await startService({
    folder: FOLDER,
    program: join(root, 'src/main.ts'),
    nodeArguments: ['--import', new URL('./coverage-probe.ts', import.meta.url).href],
    // Processes in a sandbox could not write their coverage.
    settings: { SERVICE__WORKER__SANDBOX: 'off', NODE_V8_COVERAGE: coverage, MALLOC_MMAP_THRESHOLD_: '524288' },
  });
  const video = { type: 'local_file_path', path: join(OWN_ROOT, 'samples/evening-light.mp4') };
  await service.runSync('/v2/sync/c2pa/video', { inputs: [video] });
  await sleep(COVERAGE_WAIT_MS);
  for (const name of readdirSync(coverage)) rmSync(join(coverage, name), { force: true });
  const job = await service.runSync('/v2/sync/c2pa/video', { inputs: [video] });
  if (job.status !== 'succeeded') throw new Error(`the video was not signed: ${JSON.stringify(job)}`);
  await sleep(COVERAGE_WAIT_MS);
  return new Set(readdirSync(coverage).flatMap((name) => filesRun(join(coverage, name))));
}

function filesRun(coverageFile: string): string[] {
  const prefix = pathToFileURL(join(root, 'src/')).href;
  const { result } = JSON.parse(readFileSync(coverageFile, 'utf8')) as Coverage;
  return result
    .filter(({ url, functions }) => url.startsWith(prefix) && functions.some(hasRun))
    .map(({ url }) => relative(join(root, 'src'), fileURLToPath(url)));
}

/** The function without a name is the module itself, which runs when it is loaded. */
function hasRun({ functionName, ranges }: Coverage['result'][number]['functions'][number]): boolean {
  return functionName !== '' && (ranges[0]?.count ?? 0) > 0;
}

function print(rows: readonly (readonly [string, number])[]): void {
  console.log(['| figure | |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)].join('\n'));
}
