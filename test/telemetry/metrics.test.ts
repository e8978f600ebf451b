import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Metrics, type MetricsSources, type StoreState } from '#telemetry/metrics.ts';
import { phaseDurations } from '#telemetry/run-report.ts';
import { IDLE_NODE } from '../support/jobs/test-telemetry.ts';
import { jobReport, runReport } from './reports.ts';

const STATE: StoreState = {
  works: true,
  inputs: { queued: 7, reserved: 1, running: 2 },
  oldestWaitSeconds: 12.5,
  callbacksWaiting: 3,
  inputsWaitingFor: { signer: 5 },
};

function metricsWith(differences: Partial<MetricsSources> = {}): Metrics {
  return new Metrics({
    store: async () => STATE,
    node: () => ({ ...IDLE_NODE, inputsRunning: 2, workerProcesses: 4 }),
    version: '1.2.3',
    operations: ['c2pa-video', 'verify'],
    ...differences,
  });
}

/** The samples of a text in the format of Prometheus, by name and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

describe('metrics', () => {
  test('show what is queued and running at the moment they are asked for', async () => {
    const samples = samplesOf(await metricsWith().render());
    assert.equal(samples.get('attestream_inputs{state="queued"}'), 7);
    assert.equal(samples.get('attestream_inputs{state="running"}'), 2);
    assert.equal(samples.get('attestream_queue_oldest_seconds'), 12.5);
    assert.equal(samples.get('attestream_callbacks_waiting'), 3);
    assert.equal(samples.get('attestream_store_reachable'), 1);
    assert.equal(samples.get('attestream_node_worker_processes'), 4);
  });

  test('say that the store is out of reach, and make up no numbers', async () => {
    const samples = samplesOf(await metricsWith({ store: () => Promise.reject(new Error('gone')) }).render());
    assert.equal(samples.get('attestream_store_reachable'), 0);
    assert.equal(Number.isNaN(samples.get('attestream_queue_oldest_seconds')), true);
    assert.equal(samples.get('attestream_node_worker_processes'), 4);
  });

  test('come within a bound where the store does not answer', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const rendered = metricsWith({ store: () => new Promise(() => undefined) }).render();
    t.mock.timers.tick(5_000);
    assert.equal(samplesOf(await rendered).get('attestream_store_reachable'), 0);
  });

  test('have every series with known labels from the start', async () => {
    const samples = samplesOf(await metricsWith({ callers: () => ['newsroom'] }).render());
    for (const name of [
      'jobs_ended_total{operation="verify",status="failed"}',
      'jobs_submitted_total{operation="verify",form="sync"}',
      'input_runs_total{operation="c2pa-video",end="failed"}',
      'input_failures_total{class="service",reason="INPUT_OVER_BUDGET"}',
      'input_failures_total{class="outage",reason="OUTPUT_DISK_FULL"}',
      'inputs_over_budget_total{operation="verify",budget="memory"}',
      'calls_total{call="sign",outcome="failed"}',
      'calls_total{call="s3 PutObject",outcome="failed"}',
      'callback_attempts_total{outcome="given_up"}',
      'worker_crashes_total',
      'caller_jobs_ended_total{caller="newsroom",status="failed"}',
      'dependency_away{dependency="scratch_folder"}',
      'inputs_waiting{dependency="input_bucket"}',
    ])
      assert.equal(samples.get(`attestream_${name}`), 0, name);
  });

  test('count failures that are results by reason, apart from runs that failed', async () => {
    const metrics = metricsWith();
    metrics.runEnded(runReport({ end: 'failed', reason: 'HTTP_BUSY' }));
    metrics.inputFailed('READ_BACK_FAILED');
    const samples = samplesOf(await metrics.render());
    assert.equal(samples.get('attestream_input_failures_total{class="retry",reason="HTTP_BUSY"}'), 0);
    assert.equal(samples.get('attestream_input_failures_total{class="service",reason="READ_BACK_FAILED"}'), 1);
  });

  test('show what is away, how many inputs wait for it, disks, the identity, other nodes and the release', async () => {
    const metrics = metricsWith({
      node: () => ({
        ...IDLE_NODE,
        away: ['signer'],
        identities: [
          { name: 'news', endsAtMs: Date.now() + 3_600_000 },
          { name: 'sport', endsAtMs: null },
        ],
        otherNodes: [
          { name: 'one', isAlive: true, seenAtMs: 5_000 },
          { name: 'two', isAlive: false, seenAtMs: 1_000 },
        ],
      }),
      disks: () => ({ outputs: { freeBytes: 10, sizeBytes: 100 }, scratch: null }),
    });
    const samples = samplesOf(await metrics.render());
    assert.equal(samples.get('attestream_dependency_away{dependency="signer"}'), 1);
    assert.equal(samples.get('attestream_inputs_waiting{dependency="signer"}'), 5);
    assert.equal(samples.get('attestream_disk_free_bytes{folder="outputs"}'), 10);
    assert.equal(samples.get('attestream_disk_size_bytes{folder="outputs"}'), 100);
    assert.equal(Number.isNaN(samples.get('attestream_disk_free_bytes{folder="scratch"}')), true);
    const remaining = samples.get('attestream_identity_remaining_seconds{identity="news"}') ?? 0;
    assert.ok(remaining > 0 && remaining <= 3_600, String(remaining));
    assert.equal(samples.get('attestream_nodes{state="alive"}'), 2);
    assert.equal(samples.get('attestream_nodes{state="lost"}'), 1);
    assert.equal(samples.get('attestream_node_seen_timestamp_seconds{node="two"}'), 1);
    assert.equal(samples.get(`attestream_build_info{version="1.2.3",node_version="${process.version}"}`), 1);
  });

  test('count and time inputs, their phases and what they call', async () => {
    const metrics = metricsWith();
    metrics.runEnded(
      runReport({
        calls: {
          sign: { succeeded: 1, failed: 1, durationsMs: [2, 8] },
          's3 PutObject': { succeeded: 1, failed: 0, durationsMs: [100] },
        },
      }),
    );
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
    assert.equal(samples.get('attestream_calls_total{call="sign",outcome="failed"}'), 1);
    assert.equal(samples.get('attestream_call_duration_seconds_count{call="s3 PutObject"}'), 1);
    assert.equal(samples.get('attestream_jobs_ended_total{operation="c2pa-video",status="failed"}'), 1);
    assert.equal(samples.get('attestream_jobs_submitted_total{operation="c2pa-video",form="sync"}'), 1);
  });

  test('count the jobs of callers that are known, and those of others together, where that is asked for', async () => {
    const metrics = metricsWith({ callers: () => ['newsroom'] });
    for (const caller of ['newsroom', 'gone', 'long-gone', null]) metrics.jobFinished(jobReport({ caller }));
    const samples = samplesOf(await metrics.render());
    assert.equal(samples.get('attestream_caller_jobs_ended_total{caller="newsroom",status="succeeded"}'), 1);
    assert.equal(samples.get('attestream_caller_jobs_ended_total{caller="other",status="succeeded"}'), 2);
    assert.doesNotMatch(await metrics.render({ isAdmin: false }), /caller_|node_seen/);
  });

  test('hold those of the process: memory, open files, the delay of the event loop', async () => {
    const samples = samplesOf(await metricsWith().render());
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
