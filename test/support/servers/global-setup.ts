// Starts what all test files of `npm test` share (`--test-global-setup`). A file that runs alone starts its own.
import { type S3Server, startS3Server } from '../../../scripts/s3-server.ts';
import { SHARED_S3 } from './open-test-s3.ts';

let server: S3Server | null = null;

/** Starts an S3 server, unless the tests are pointed to another one. Test files find it by their environment. */
export async function globalSetup(): Promise<void> {
  if (process.env['S3_TEST_ENDPOINT'] !== undefined) return;
  server = await startS3Server();
  process.env[SHARED_S3] = JSON.stringify(server);
}

export async function globalTeardown(): Promise<void> {
  await server?.stop();
}
