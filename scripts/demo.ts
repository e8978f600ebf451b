// `npm run demo`: starts the service on its embedded defaults, signs a sample video, a sample audio file and a sample
// publication through HTTP, packages and signs a folder, and tells what the official C2PA reader says of the results.
// Everything it makes is under .artifacts/demo. On a terminal the service runs on until Ctrl-C, to be looked at in the console.
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import type { JobResultResponse } from '#contract/job.ts';
import { readFragmentProvenance } from './fragment-report.ts';
import { type ProvenanceReport, readProvenance } from './provenance-report.ts';
import { type RunningService, startService } from './running-service.ts';

const ROOT = join(fileURLToPath(import.meta.url), '../..');
const FOLDER = join(ROOT, '.artifacts/demo');

/** One thing the demo shows. A further operation is a further entry in `SHOWINGS`. */
interface Showing {
  readonly title: string;
  /** Has the service do it, prints what became of it, and returns the job with the verdict of the official reader. */
  run(service: RunningService): Promise<Shown>;
}

interface Shown {
  readonly isValid: boolean;
  readonly jobId: string;
}

const SHOWINGS: readonly Showing[] = [
  {
    title: 'A video, on the synchronous endpoint',
    run: async (service) => {
      const body = {
        inputs: [{ type: 'local_file_path', path: join(ROOT, 'samples/evening-light.mp4') }],
        params: { assertions: [{ label: 'com.example.review', data: { reviewer: 'desk-4', approved: true } }] },
      };
      say(`  POST /v2/sync/c2pa/video, with the assertion com.example.review`);
      const job = await service.runSync('/v2/sync/c2pa/video', body);
      return { isValid: await reportFile(outputOf(job), 'video/mp4'), jobId: job.job_id };
    },
  },
  {
    title: 'An audio file, on the asynchronous endpoint',
    run: async (service) => {
      const body = {
        inputs: [{ type: 'local_file_path', path: join(ROOT, 'samples/four-notes.mp3') }],
        params: { parent: { type: 'reference', reference: 'archive-item-4711' } },
      };
      const jobId = await service.submit('/v2/c2pa/audio', body);
      say(`  POST /v2/c2pa/audio, with the parent archive-item-4711 → job ${jobId}`);
      const seen = new Set<string>();
      const job = await service.waitFor(jobId, { intervalMs: 5, onLook: ({ status }) => seen.add(status) });
      say(`  GET /v2/jobs/${jobId} → ${[...seen].join(' → ')}`);
      return { isValid: await reportFile(outputOf(job), 'audio/mpeg'), jobId };
    },
  },
  {
    title: 'A streaming publication, HLS and DASH over the same fragments',
    run: async (service) => {
      const body = {
        inputs: [{ type: 'local_folder_path', path: join(ROOT, 'samples/publication') }],
        params: { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init-*.mp4', frag_pattern: 'fragment-*.m4s' },
      };
      say('  POST /v2/sync/c2pa/fragmented, with patterns for playlists, init segments and fragments');
      const job = await service.runSync('/v2/sync/c2pa/fragmented', body);
      const prefixOf = (init: string) => `fragment-${/\d+/.exec(init)?.[0]}-`;
      return { isValid: await reportFragments(outputOf(job), prefixOf), jobId: job.job_id };
    },
  },
  {
    title: 'A folder of media: packaged as HLS and DASH, and signed',
    run: async (service) => {
      const names = ['evening-light.mp4', 'evening-light.de.m4a', 'evening-light.en.vtt'];
      const film = join(FOLDER, 'film');
      mkdirSync(film);
      for (const name of names) copyFileSync(join(ROOT, 'samples', name), join(film, name));
      const body = {
        inputs: [{ type: 'local_folder_path', path: film }],
        params: { segment_duration: 2, tracks: [{ file: 'evening-light.mp4', language: 'en' }] },
      };
      say(`  POST /v2/sync/c2pa/package, with ${names.join(', ')}`);
      const job = await service.runSync('/v2/sync/c2pa/package', body);
      const folder = outputOf(job);
      const isValid = await reportFragments(folder, () => '0');
      for (const warning of job.results[0]?.warnings ?? []) line('Note', warning);
      line('Play it', styleText('bold', `npm run play -- ${relative(process.cwd(), folder)}`));
      return { isValid, jobId: job.job_id };
    },
  },
];

rmSync(FOLDER, { recursive: true, force: true });
const allValid = await demonstrate();
if (!allValid) process.exitCode = 1;

async function demonstrate(): Promise<boolean> {
  say(heading('Attestream demo'));
  const startedAt = performance.now();
  await using service = await startService({ folder: FOLDER });
  say(
    `The service runs on ${service.base} (${Math.round(performance.now() - startedAt)} ms to start), on its defaults`,
  );
  say('and with a development signing identity made for this demo.');
  const shown: Shown[] = [];
  for (const showing of SHOWINGS) {
    say(`\n${heading(showing.title)}`);
    shown.push(await showing.run(service));
  }
  sayWhatNext();
  if (process.stdout.isTTY) await keepRunning(service, shown.at(-1));
  return shown.every(({ isValid }) => isValid);
}

/** Lets people look at the last result in the console, until Ctrl-C. */
async function keepRunning({ base, ended }: RunningService, last: Shown | undefined): Promise<void> {
  if (last === undefined) return;
  say(`\n${heading('Watch it being verified while it plays')}`);
  line('Player', styleText('bold', `${base}/#/play?job=${last.jobId}&index=0`));
  line('Jobs', `${base}/`);
  say('\nThe service runs until Ctrl-C.');
  await Promise.race([once(process, 'SIGINT'), ended]);
}

/** Prints what the official reader says of a signed file. */
async function reportFile(path: string, mediaType: string): Promise<boolean> {
  const provenance = await readProvenance(path, mediaType);
  if (provenance === null) {
    say(styleText('red', `  The official reader finds no manifest in ${path}.`));
    return false;
  }
  line('File', relative(process.cwd(), path));
  const { state, findings } = provenance;
  line('Reader', styleText(isValid(provenance) ? 'green' : 'red', state) + explain(findings));
  reportManifest(provenance);
  return isValid(provenance);
}

/**
 * Prints what the official reader says of every fragment of a signed publication, each under its init segment, as a
 * player asks it. The fragments lie beside their init segment, under names that begin as `prefixOf` says.
 */
async function reportFragments(folder: string, prefixOf: (init: string) => string): Promise<boolean> {
  line('Folder', relative(process.cwd(), folder));
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const provenances: ProvenanceReport[] = [];
  for (const init of paths.filter((path) => /^init.*\.mp4$/.test(basename(path)))) {
    const initBytes = readFileSync(join(folder, init));
    line('Init', `${init} with the manifest, one for all`);
    const isFragment = (path: string): boolean =>
      dirname(path) === dirname(init) && path.endsWith('.m4s') && basename(path).startsWith(prefixOf(init));
    for (const path of paths.filter(isFragment)) {
      const provenance = await readFragmentProvenance(initBytes, readFileSync(join(folder, path)));
      line('', `${basename(path)}  ${styleText(isValid(provenance) ? 'green' : 'red', provenance.state)}`);
      provenances.push(provenance);
    }
  }
  const [first] = provenances;
  if (first === undefined) return false;
  const valid = provenances.filter(isValid).length;
  line('Reader', `${valid} of ${provenances.length} fragments valid${explain(first.findings)}`);
  reportManifest(first);
  return valid === provenances.length;
}

function isValid({ state }: ProvenanceReport): boolean {
  return state === 'Valid' || state === 'Trusted';
}

function reportManifest({ signedBy, generator, actions, ingredients, assertions }: ProvenanceReport): void {
  line('Signed by', `${signedBy}, with ${generator}`);
  line('Actions', actions.join(', '));
  for (const { title, relationship } of ingredients) line('Ingredient', `${title} (${relationship})`);
  for (const { label, data } of assertions) line('Assertion', `${label} = ${JSON.stringify(data)}`);
}

function explain(findings: readonly string[]): string {
  const others = findings.filter((code) => code !== 'signingCredential.untrusted');
  if (others.length > 0) return `: ${others.join(', ')}`;
  return findings.length === 0 ? '' : ' (unchanged since it was signed; the development identity is on no trust list)';
}

function sayWhatNext(): void {
  say(`\n${heading('What next')}`);
  say(
    `  The signed media are in ${relative(process.cwd(), join(FOLDER, 'output'))}. Any C2PA reader can look at them.`,
  );
  say('  Start the service for good:   npm start        (console: http://localhost:8080/, API reference under /docs)');
  say('  Its settings, all optional:   config/service.toml');
}

function outputOf({ status, results }: JobResultResponse): string {
  const [result] = results;
  if (result?.output_path === undefined)
    throw new Error(`The job is ${status}: ${result?.error ?? 'it has no result'}`);
  return result.output_path;
}

function heading(text: string): string {
  return styleText('bold', text);
}

function line(label: string, value: string): void {
  say(`  ${label.padEnd(12)}${value}`);
}

function say(text: string): void {
  console.log(text);
}
