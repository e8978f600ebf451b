import { execFile, spawnSync } from 'node:child_process';
import { promisify } from 'node:util';
import type { S3Place } from '../scripts/s3-server.ts';

const run = promisify(execFile);

/** Returns true where rclone is installed. Debian has it in a package of that name. */
export function isRcloneInstalled(): boolean {
  return spawnSync('rclone', ['version'], { stdio: 'ignore' }).status === 0;
}

/**
 * Runs rclone on a bucket of a server and returns the milliseconds that it took, its start included. Where the server is
 * not to copy, all bytes pass through rclone. Its uploads have parts of 8 MiB, four at once.
 */
export async function timeRclone(
  { endpoint, region, accessKeyId, secretAccessKey }: S3Place,
  [command, from, to]: readonly [command: 'copy' | 'copyto', from: string, to: string],
  { serverCopies, filesAtOnce = 1 }: { readonly serverCopies: boolean; readonly filesAtOnce?: number },
): Promise<number> {
  const parameters = [
    ...['--config', '', command, `bench:${from}`, `bench:${to}`],
    ...['--s3-chunk-size', '8M', '--s3-upload-concurrency', '4', '--s3-no-check-bucket'],
    ...['--transfers', String(filesAtOnce), '--checkers', String(filesAtOnce)],
    ...(serverCopies ? [] : ['--disable', 'copy']),
    // Uploads again files of an earlier round that have the same size and time.
    '--ignore-times',
  ];
  const env = {
    PATH: process.env['PATH'],
    RCLONE_CONFIG_BENCH_TYPE: 's3',
    RCLONE_CONFIG_BENCH_PROVIDER: 'Ceph',
    RCLONE_CONFIG_BENCH_ENDPOINT: endpoint,
    RCLONE_CONFIG_BENCH_REGION: region,
    RCLONE_CONFIG_BENCH_ACCESS_KEY_ID: accessKeyId,
    RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY: secretAccessKey,
    RCLONE_CONFIG_BENCH_FORCE_PATH_STYLE: 'true',
  };
  const startedAt = performance.now();
  await run('rclone', parameters, { env });
  return performance.now() - startedAt;
}
