import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { jobResultResponse } from '#contract/job.ts';
import { serveJobs } from './serve-jobs.ts';

const BATCH = 10_000;

describe('a batch of ten thousand inputs', () => {
  test('holds up neither a synchronous request of one file, nor an asynchronous one, nor a look-up', async (t) => {
    const server = await serveJobs(t, { worker: { default_max_files_parallel: 2 } });
    const batch = await server.submit(...Array.from({ length: BATCH }, () => 'sleep 10'));
    for (let time = 0; time < 3; time += 1) {
      const reply = await server.post('/v2/sync/c2pa/video', ['progress 1']);
      assert.equal(jobResultResponse.parse(await reply.json()).status, 'succeeded');
      const single = await server.submit('progress 1');
      assert.equal((await server.ended(single)).status, 'succeeded');
    }
    const { status, progress } = await server.lookUp(batch);
    assert.equal(status, 'running');
    assert.ok((progress?.inputs_done ?? BATCH) < BATCH / 2, `${progress?.inputs_done} inputs of the batch went first`);
    await fetch(`${server.base}/v2/jobs/${batch}`, { method: 'DELETE' });
    const { results } = await server.ended(batch);
    assert.equal(results.length, BATCH);
    assert.ok(results.every((entry, index) => entry.input_index === index));
  });

  test('holds up no other where many wait for theirs at once', async (t) => {
    const server = await serveJobs(t);
    const batch = await server.submit(...Array.from({ length: BATCH }, () => 'sleep 5'));
    const replies = await Promise.all(
      Array.from({ length: 100 }, () => server.post('/v2/sync/c2pa/video', ['progress 1'])),
    );
    for (const reply of replies) assert.equal(jobResultResponse.parse(await reply.json()).status, 'succeeded');
    assert.equal((await server.lookUp(batch)).status, 'running');
  });
});
