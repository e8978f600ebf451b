import assert from 'node:assert/strict';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { FORMAT, wav } from '../support/media/wav-bytes.ts';
import { sendFile, startServer } from '../support/servers/http-server.ts';
import { fillDisk, openSmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const DISK_BYTES = 4 * 1024 * 1024;
const MOST_SUBMISSIONS = 500;
/** The service tries to write once a second. Where the small disk is one that others use too, there may be room again. */
const MOST_LOOKS = 500;
const SOUND = wav([FORMAT, { id: 'data', payload: Buffer.alloc(100_000, 7) }]);

/** A request of some size, so that a disk is soon full of them. */
const requestFor = (input: object) => ({
  inputs: [input],
  params: { assertions: [{ label: 'com.example.long', data: { text: 'x'.repeat(20_000) } }] },
});

test('a full data disk refuses jobs for now, and costs none that was accepted, spooled ones included', async (t) => {
  const disk = await openSmallDisk(DISK_BYTES);
  t.after(() => disk.cleanUp());
  const folder = temporaryFolder();
  const gate = Promise.withResolvers<void>();
  // Without ranges, so that it has to lie in the scratch space, which is on the full disk too.
  const server = await startServer((request, response) => {
    void gate.promise.then(() => sendFile(request, response, { content: SOUND, ranges: false }));
  });
  t.after(() => server.close());
  const path = join(folder, 'sound.wav');
  await writeFile(path, SOUND);
  const service = await startService({ folder, settings: { SERVICE__JOBS__DATA_DIR: join(disk.path, 'data') } });
  t.after(() => service.stop());

  const spooled = { type: 'remote_file_url', url: `${server.base}/spooled.wav` };
  const accepted = [await service.submit('/v2/c2pa/audio', requestFor(spooled))];
  const filler = await fillDisk(disk.path);
  const local = { type: 'local_file_path', path };
  const refusal = await submitUntilRefused(service, requestFor(local), accepted);
  assert.equal(refusal.status, 503);
  assert.match(refusal.headers.get('retry-after') ?? '', /^\d+$/);
  const { error } = (await refusal.json()) as { error: { code: string; message: string } };
  assert.equal(error.code, 'SERVICE_UNAVAILABLE');
  assert.ok(!error.message.includes(disk.path), 'the log names the folder, and the answer does not');
  gate.resolve();
  for (let looks = 0; looks < MOST_LOOKS && (await healthOf(service)) === 200; looks += 1) await sleep(20);

  await truncate(filler, 0);
  for (const jobId of accepted) {
    const job = await service.waitFor(jobId);
    assert.equal(job.status, 'succeeded', JSON.stringify(job.results));
  }
  await until(async () => (await healthOf(service)) === 200);
  const log = await readFile(service.logPath, 'utf8');
  assert.match(log, /the job store is away: nothing is accepted or recorded.*the job store works again/s);
  await service.runSync('/v2/sync/c2pa/audio', requestFor(local));
});

/** Sends a job again and again until it is refused. */
async function submitUntilRefused(service: RunningService, body: object, accepted: string[]): Promise<Response> {
  for (let count = 0; count < MOST_SUBMISSIONS; count += 1) {
    const reply = await fetch(`${service.base}/v2/c2pa/audio`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (reply.status !== 200) return reply;
    accepted.push(((await reply.json()) as { job_id: string }).job_id);
  }
  throw new Error('the disk does not get full');
}

async function healthOf({ base }: RunningService): Promise<number> {
  return (await fetch(`${base}/v2/health`)).status;
}
