import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { phaseDurations } from '#telemetry/run-report.ts';
import { type CurrentState, Metrics } from '#telemetry/telemetry.ts';
import { jobReport, runReport } from './reports.ts';

const STATE: CurrentState = {
  inputs: { queued: 7, reserved: 1, running: 2 },
  oldestWaitSeconds: 12.5,
  callbacksWaiting: 3,
  runningHere: 2,
  workerProcesses: 4,
};

/** The samples of a text in the format of Prometheus, by name and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

describe('metrics', () => {
  test('show what is queued and running at the moment they are asked for', async () => {
    const samples = samplesOf(await new Metrics(async () => STATE).render());
    assert.equal(samples.get('attestream_inputs{state="queued"}'), 7);
    assert.equal(samples.get('attestream_inputs{state="running"}'), 2);
    assert.equal(samples.get('attestream_queue_oldest_seconds'), 12.5);
    assert.equal(samples.get('attestream_callbacks_waiting'), 3);
    assert.equal(samples.get('attestream_store_reachable'), 1);
    assert.equal(samples.get('attestream_node_worker_processes'), 4);
  });

  test('say that the store is out of reach, and make up no numbers', async () => {
    const samples = samplesOf(await new Metrics(() => Promise.reject(new Error('gone'))).render());
    assert.equal(samples.get('attestream_store_reachable'), 0);
    assert.equal(Number.isNaN(samples.get('attestream_queue_oldest_seconds')), true);
  });

  test('count and time inputs, their phases and what they call', async () => {
    const metrics = new Metrics(async () => STATE);
    metrics.runEnded(runReport({ calls: { sign: [2, 8], 's3 put': [100] } }));
    metrics.runEnded(runReport({ end: 'failed' }));
    metrics.jobFinished(jobReport({ status: 'failed' }));
    metrics.jobSubmitted('c2pa-video', 'sync');
    const samples = samplesOf(await metrics.render());
    assert.equal(samples.get('attestream_input_runs_total{operation="c2pa-video",end="succeeded"}'), 1);
    assert.equal(samples.get('attestream_output_bytes_total{operation="c2pa-video"}'), 2000);
    assert.equal(samples.get('attestream_input_run_duration_seconds_sum{operation="c2pa-video"}'), 0.08);
    assert.equal(
      samples.get('attestream_input_phase_duration_seconds_sum{operation="c2pa-video",phase="copied"}'),
      0.04,
    );
    assert.equal(samples.get('attestream_call_duration_seconds_sum{call="sign"}'), 0.01);
    assert.equal(samples.get('attestream_call_duration_seconds_count{call="s3 put"}'), 1);
    assert.equal(samples.get('attestream_jobs_ended_total{operation="c2pa-video",status="failed"}'), 1);
    assert.equal(samples.get('attestream_jobs_submitted_total{operation="c2pa-video",form="sync"}'), 1);
  });

  test('count the jobs of callers that are known, and those of others together, where that is asked for', async () => {
    const metrics = new Metrics(async () => STATE, ['newsroom']);
    for (const caller of ['newsroom', 'gone', 'long-gone', null]) metrics.jobFinished(jobReport({ caller }));
    const samples = samplesOf(await metrics.render());
    assert.equal(samples.get('attestream_caller_jobs_ended_total{caller="newsroom",status="succeeded"}'), 1);
    assert.equal(samples.get('attestream_caller_jobs_ended_total{caller="other",status="succeeded"}'), 2);
    assert.doesNotMatch(await metrics.render({ ofCallers: false }), /caller/);
  });

  test('hold those of the process: memory, open files, the delay of the event loop', async () => {
    const samples = samplesOf(await new Metrics(async () => STATE).render());
    for (const name of ['process_resident_memory_bytes', 'process_open_fds', 'nodejs_eventloop_lag_p99_seconds']) {
      assert.ok(samples.has(name), name);
    }
  });

  test('take the duration of a phase from the one before it', () => {
    assert.deepEqual(phaseDurations({ copied: 30, resolved: 10 }), [
      { phase: 'resolved', ms: 10 },
      { phase: 'copied', ms: 20 },
    ]);
  });
});
