import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../scripts/running-service.ts';
import { type Identity, makeIdentity } from './identity.ts';
import { measureProgram } from './measuring.ts';

/** The longest that a synchronous request of the benchmark may wait. */
const SYNC_TIMEOUT_MS = 600_000;

/** The folder, identity and number of rounds of a part of the benchmark. */
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

/** Options of a service of the benchmark. */
export interface BenchServiceOptions {
  readonly readBack: boolean;
  /** Read back every fragment of a publication, not a sample. */
  readonly allFragments?: boolean;
  readonly loopDelayFile?: string;
  /** The program of another checkout, to be measured instead of this one. */
  readonly program?: string;
}

/** Starts the service with the benchmark's identity. */
export function startBenchService(
  { folder, identity }: BenchContext,
  name: string,
  { readBack, allFragments = false, loopDelayFile, program }: BenchServiceOptions,
  settings: Readonly<Record<string, string>> = {},
): Promise<RunningService> {
  const probe = new URL('./loop-delay-probe.ts', import.meta.url).href;
  return startService({
    folder: join(folder, name),
    settings: {
      // As deploy/attestream.service sets it.
      MALLOC_MMAP_THRESHOLD_: '524288',
      SERVICE__SERVER__SYNC_TIMEOUT_MS: String(SYNC_TIMEOUT_MS),
      SERVICE__SIGNING__CERTIFICATE_PATH: identity.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: identity.keyPath,
      SERVICE__SIGNING__VERIFY_OUTPUTS: String(readBack),
      SERVICE__SIGNING__VERIFY_FRAGMENTS: allFragments ? 'all' : 'sample',
      ...(loopDelayFile !== undefined && { BENCH_LOOP_DELAY_FILE: loopDelayFile }),
      ...settings,
    },
    ...(program !== undefined && { program }),
    nodeArguments: loopDelayFile === undefined ? [] : ['--import', probe],
  });
}

/**
 * Says if measured outputs are removed. Those of many small files stay until the end: on ext4, files that are
 * created within a minute after others were deleted cost twice the processor time.
 */
export type Afterwards = 'removed' | 'kept';

let nextFolder = 1;

/** The name of a folder that nothing was written into yet. */
function freshFolder(): string {
  return `outputs-${nextFolder++}`;
}

/** The parameters of a request for sidecars without copies of the files. */
export const SIDECAR_ALONE = { manifest: 'sidecar', copy_source: false } as const;

/** Signs files in one request and returns the milliseconds from the request to the answer. */
export async function timeService(
  service: RunningService,
  operation: 'video' | 'audio',
  files: readonly string[],
  afterwards: Afterwards = 'removed',
  params: object = {},
): Promise<number> {
  const inputs = files.map((path) => ({ type: 'local_file_path', path }));
  const output = afterwards === 'kept' ? { type: 'local', prefix: freshFolder() } : undefined;
  const startedAt = performance.now();
  const job = await service.runSync(`/v2/sync/c2pa/${operation}`, { inputs, output, params });
  const milliseconds = performance.now() - startedAt;
  const paths = outputsOf(job);
  if (afterwards === 'removed') for (const path of paths) rmSync(path);
  return milliseconds;
}

function outputsOf(job: JobResultResponse): string[] {
  return job.results.map(({ output_path: output, error }) => {
    if (output === undefined) throw new Error(`the service failed: ${error}`);
    return output;
  });
}

/** Options of a run of the SDK alone. */
export interface SdkOptions {
  readonly readBack: boolean;
  /** Each output appears whole or not at all, and its name is on the disk. */
  readonly whole?: boolean;
}

/** Returns the command line of the SDK alone, which writes into `outFolder`. */
export function sdkParameters(
  { identity }: BenchContext,
  mediaType: string,
  files: readonly string[],
  outFolder: string,
  { readBack, whole = false }: SdkOptions,
): string[] {
  mkdirSync(outFolder, { recursive: true });
  const flags = [...(readBack ? ['--read-back'] : []), ...(whole ? ['--whole'] : [])];
  return [identity.certificatePath, identity.keyPath, mediaType, outFolder, ...flags, ...files];
}

/** Signs files with the SDK alone, into a folder of its own; returns the milliseconds. */
export async function timeSdk(
  context: BenchContext,
  mediaType: string,
  files: readonly string[],
  options: SdkOptions,
  afterwards: Afterwards = 'removed',
): Promise<number> {
  const outFolder = join(context.folder, 'sdk', freshFolder());
  const parameters = sdkParameters(context, mediaType, files, outFolder, options);
  const milliseconds = await measureProgram('./sdk-program.ts', parameters);
  if (afterwards === 'removed') rmSync(outFolder, { recursive: true });
  return milliseconds;
}
