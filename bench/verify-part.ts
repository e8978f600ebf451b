import { basename, join } from 'node:path';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService } from './bench-context.ts';
import { measureProgram, measureRounds, median } from './measuring.ts';
import { LARGE, type PublicationShape, SMALL, writePublication } from './publication-media.ts';
import { ratioTarget, type Target, targetsTable, timesTable } from './report.ts';

const MIN_FRAGMENTS_PER_SECOND = 4_000;
const MAX_HASHING_RATIO = 1.5;

const HASHING = 'bare loop: read and hash each file, one thread';
const SERVICE = 'service: `/v2/verify`';

/** Signed publications that are verified: many bytes, then many files. */
export async function verifyPart(context: BenchContext): Promise<string> {
  await using service = await startBenchService(context, 'verify', { readBack: false });
  const large = await measureShape(context, service, LARGE);
  const small = await measureShape(context, service, SMALL);
  const rate = (SMALL.fragments / small.median) * 1000;
  const targets: Target[] = [
    ratioTarget(`1.5 GB: at most ${MAX_HASHING_RATIO} times the bare loop`, [large.service, large.hashing], {
      atMost: MAX_HASHING_RATIO,
    }),
    {
      statement: `4 kB: at least ${MIN_FRAGMENTS_PER_SECOND} fragments a second`,
      measured: `${Math.round(rate)}`,
      held: rate >= MIN_FRAGMENTS_PER_SECOND,
    },
  ];
  return [
    `## Verifying signed publications in 3 renditions (${context.rounds} rounds)`,
    '2,000 fragments, 1.5 GB:',
    large.table,
    '20,000 fragments of 4 kB:',
    small.table,
    '### Targets',
    targetsTable(targets),
  ].join('\n\n');
}

/** Has a publication signed, and returns the folder of the output. */
export async function signForVerification(service: RunningService, unsigned: string): Promise<string> {
  const { results } = await service.runSync('/v2/sync/c2pa/fragmented', {
    inputs: [{ type: 'local_folder_path', path: unsigned }],
    output: { type: 'local', name: `signed-${basename(unsigned)}` },
    params: { playlist_pattern: '*.m3u8', init_pattern: 'init.mp4', frag_pattern: '*.m4s' },
  });
  const signed = results[0]?.output_path;
  if (signed === undefined) throw new Error(`the service failed: ${results[0]?.error}`);
  return signed;
}

async function measureShape({ folder, rounds }: BenchContext, service: RunningService, shape: PublicationShape) {
  const signed = await signForVerification(
    service,
    await writePublication(join(folder, `unsigned-${shape.fragments}`), shape),
  );
  // The first input of an operation starts its worker, and does not count.
  await timeVerification(service, signed);
  const contenders = [
    { name: HASHING, measure: () => measureProgram('./hash-loop.ts', [signed]) },
    { name: SERVICE, measure: () => timeVerification(service, signed) },
  ];
  const series = await measureRounds(contenders, rounds);
  const [hashing, verifying] = [series.get(HASHING) ?? [], series.get(SERVICE) ?? []];
  return { hashing, service: verifying, median: median(verifying), table: timesTable(contenders, series) };
}

/** Has a publication verified, and returns the milliseconds from the request to the answer. */
export async function timeVerification(service: RunningService, folder: string): Promise<number> {
  const startedAt = performance.now();
  const { results } = await service.runSync('/v2/sync/verify', {
    inputs: [{ type: 'local_folder_path', path: folder }],
    params: {},
  });
  const state = results[0]?.verification?.state;
  if (state !== 'valid') throw new Error(`the service found ${state}: ${results[0]?.error}`);
  return performance.now() - startedAt;
}
