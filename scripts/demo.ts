// `npm run demo`: starts the service on its embedded defaults, signs a sample video and a sample audio file through
// HTTP, and tells what the official C2PA reader says of the results. Everything it makes is under .artifacts/demo.
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';
import type { JobResultResponse } from '#contract/job.ts';
import { readProvenance } from './provenance-report.ts';
import { type RunningService, startService } from './running-service.ts';

const ROOT = join(fileURLToPath(import.meta.url), '../..');
const FOLDER = join(ROOT, '.artifacts/demo');

/** One thing the demo shows. A further operation is a further entry in `SHOWINGS`. */
interface Showing {
  readonly title: string;
  /** Has the service do it and returns where the outputs are, with their media types. */
  run(service: RunningService): Promise<{ readonly path: string; readonly mediaType: string }>;
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
      return { path: outputOf(job), mediaType: 'video/mp4' };
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
      return { path: outputOf(job), mediaType: 'audio/mpeg' };
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
  const verdicts: boolean[] = [];
  for (const showing of SHOWINGS) {
    say(`\n${heading(showing.title)}`);
    const { path, mediaType } = await showing.run(service);
    verdicts.push(await report(path, mediaType));
  }
  sayWhatNext();
  return verdicts.every((valid) => valid);
}

/** Prints what the official reader says of an output, and returns whether it is valid. */
async function report(path: string, mediaType: string): Promise<boolean> {
  const provenance = await readProvenance(path, mediaType);
  if (provenance === null) {
    say(styleText('red', `  The official reader finds no manifest in ${path}.`));
    return false;
  }
  const { state, findings, signedBy, generator, actions, ingredients, assertions } = provenance;
  const valid = state === 'Valid' || state === 'Trusted';
  line('File', relative(process.cwd(), path));
  line('Reader', styleText(valid ? 'green' : 'red', state) + explain(findings));
  line('Signed by', `${signedBy}, with ${generator}`);
  line('Actions', actions.join(', '));
  for (const { title, relationship } of ingredients) line('Ingredient', `${title} (${relationship})`);
  for (const { label, data } of assertions) line('Assertion', `${label} = ${JSON.stringify(data)}`);
  return valid;
}

function explain(findings: readonly string[]): string {
  const others = findings.filter((code) => code !== 'signingCredential.untrusted');
  if (others.length > 0) return `: ${others.join(', ')}`;
  return findings.length === 0 ? '' : ' (unchanged since it was signed; the development identity is on no trust list)';
}

function sayWhatNext(): void {
  say(`\n${heading('What next')}`);
  say(
    `  The signed files are in ${relative(process.cwd(), join(FOLDER, 'output'))}. Any C2PA reader can look at them.`,
  );
  say('  Start the service for good:   npm start        (http://localhost:8080, API reference under /docs)');
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
