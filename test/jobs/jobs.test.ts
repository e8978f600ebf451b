import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ended, scripts, startedJobs } from './test-jobs.ts';

describe('jobs', () => {
  test('a job runs to its end and tells what became of each input', async (t) => {
    const jobs = await startedJobs(t);
    const { job_id: jobId, status } = await jobs.submit(scripts(['progress 10', 'fail /nowhere', 'progress 5']));
    assert.equal(status, 'queued');
    const job = await ended(jobs, jobId);
    assert.equal(job.status, 'failed');
    assert.deepEqual(job.results[0], { input_index: 0, status: 'succeeded', output_path: '/out/0' });
    assert.equal(job.results[1]?.error_code, 'PROCESSING_FAILED');
    assert.deepEqual(job.results[1]?.error_details, { reason: 'SOURCE_NOT_FOUND', path: '/nowhere' });
    assert.equal(job.results[2]?.status, 'succeeded');
    assert.equal(job.progress, undefined);
    assert.deepEqual(await jobs.find(jobId), job);
  });
});
