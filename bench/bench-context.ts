import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../scripts/running-service.ts';
import { type Identity, makeIdentity } from './identity.ts';
import { measureProgram } from './measuring.ts';

/** The longest that a synchronous request of the benchmark may wait. */
const SYNC_TIMEOUT_MS = 600_000;

/** What every part of the benchmark works with. */
export interface BenchContext {
  /** A folder of its own, which is removed at the end. */
  readonly folder: string;
  readonly identity: Identity;
  readonly rounds: number;
}

/** One part of the benchmark: measures, and returns what it found as Markdown. */
export type BenchPart = (context: BenchContext) => Promise<string>;

export function openContext(folder: string, rounds: number): BenchContext {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return { folder, identity: makeIdentity(join(folder, 'identity')), rounds };
}

/** What a service of the benchmark does. */
export interface BenchServiceOptions {
  readonly readBack: boolean;
  /** Read back every fragment of a publication, not a sample. */
  readonly allFragments?: boolean;
  readonly loopDelayFile?: string;
}

/** Starts the service with the benchmark's identity. */
export function startBenchService(
  { folder, identity }: BenchContext,
  name: string,
  { readBack, allFragments = false, loopDelayFile }: BenchServiceOptions,
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const probe = new URL('./loop-delay-probe.ts', import.meta.url).href;
  return startService({
    folder: join(folder, name),
    settings: {
      LOG_LEVEL: 'warn',
      SERVICE__SERVER__SYNC_TIMEOUT_MS: String(SYNC_TIMEOUT_MS),
      SERVICE__SIGNING__CERTIFICATE_PATH: identity.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: identity.keyPath,
      SERVICE__SIGNING__VERIFY_OUTPUTS: String(readBack),
      SERVICE__SIGNING__VERIFY_FRAGMENTS: allFragments ? 'all' : 'sample',
      ...(loopDelayFile !== undefined && { BENCH_LOOP_DELAY_FILE: loopDelayFile }),
      ...settings,
    },
    nodeArguments: loopDelayFile === undefined ? [] : ['--import', probe],
  });
}

/** Signs files in one request and returns the milliseconds from the request to the answer. Removes the outputs. */
export async function timeService(
  service: RunningService,
  operation: 'video' | 'audio',
  files: readonly string[],
): Promise<number> {
  const inputs = files.map((path) => ({ type: 'local_file_path', path }));
  const startedAt = performance.now();
  const job = await service.runSync(`/v2/sync/c2pa/${operation}`, { inputs });
  const milliseconds = performance.now() - startedAt;
  for (const output of outputsOf(job)) rmSync(output);
  return milliseconds;
}

function outputsOf(job: JobResultResponse): string[] {
  return job.results.map(({ output_path: output, error }) => {
    if (output === undefined) throw new Error(`the service failed: ${error}`);
    return output;
  });
}

/** What the SDK alone is to do. */
export interface SdkOptions {
  readonly readBack: boolean;
  /** Each output appears whole or not at all, and its name is on the disk. */
  readonly whole?: boolean;
}

/** What the SDK alone is given on its command line. */
export function sdkParameters(
  { folder, identity }: BenchContext,
  mediaType: string,
  files: readonly string[],
  { readBack, whole = false }: SdkOptions,
): string[] {
  const outFolder = join(folder, 'sdk');
  rmSync(outFolder, { recursive: true, force: true });
  mkdirSync(outFolder);
  const flags = [...(readBack ? ['--read-back'] : []), ...(whole ? ['--whole'] : [])];
  return [identity.certificatePath, identity.keyPath, mediaType, outFolder, ...flags, ...files];
}

/** Signs files with the SDK alone and returns the milliseconds. Removes the outputs. */
export async function timeSdk(
  context: BenchContext,
  mediaType: string,
  files: readonly string[],
  options: SdkOptions,
): Promise<number> {
  const milliseconds = await measureProgram('./sdk-program.ts', sdkParameters(context, mediaType, files, options));
  rmSync(join(context.folder, 'sdk'), { recursive: true });
  return milliseconds;
}
