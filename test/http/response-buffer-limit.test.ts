import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { jobResponse } from '#contract/job.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

/** More than what the system keeps of an answer that nobody reads. */
const ANSWER_BYTES = 20 * 1024 * 1024;
const ENTRY_BYTES = 2048;
/** The number of them that the limit admits. */
const ANSWERS_AT_ONCE = 3;

let server: TestServer;
let large: string;
let small: string;

before(async () => {
  server = await serve();
  [large, small] = [await endedJob(ANSWER_BYTES / ENTRY_BYTES), await endedJob(1)];
});
after(() => server.app.close());

/** The address of a job that has ended with so many results. */
async function endedJob(count: number): Promise<string> {
  const { job_id: jobId } = jobResponse.parse(await (await server.post('/v2/c2pa/video', goodBody)).json());
  const output_path = '/'.padEnd(ENTRY_BYTES, 'x');
  server.jobs.end(
    jobId,
    Array.from({ length: count }, (_, input_index) => ({ input_index, status: 'succeeded', output_path })),
  );
  return `/v2/jobs/${jobId}`;
}

/** Asks for something and reads nothing of the answer. */
function askAndNotRead(path: string): Socket {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname).pause();
  socket.on('error', () => undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return socket;
}

async function statusOf(path: string): Promise<number> {
  const reply = await fetch(server.base + path);
  await reply.arrayBuffer();
  return reply.status;
}

test('large answers that nobody reads take bounded memory, and keep no small one back', async () => {
  const sockets = Array.from({ length: ANSWERS_AT_ONCE + 1 }, () => askAndNotRead(large));
  // The answers that are not read are not logged, but the one for which there was no room.
  await until(() => server.logged.some((line) => line.includes('"status":503')));
  const refused = await fetch(server.base + large);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  const error = await errorOf(refused);
  assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
  assert.equal(await statusOf(small), 200);
  for (const socket of sockets) socket.destroy();
  await until(async () => (await statusOf(large)) === 200);
});
