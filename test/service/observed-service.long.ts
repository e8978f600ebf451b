import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { RELEASE } from '#config/release.ts';
import { readiness } from '#contract/service.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { FORMAT, wav } from '../support/media/wav-bytes.ts';
import { startReceiver } from '../support/servers/callback-receiver.ts';
import { attributeOf, type OtlpSpan, startOtlpReceiver } from '../support/servers/otlp-receiver.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

async function serviceWith(t: TestContext, settings: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'observed-'));
  const source = join(folder, 'sound.wav');
  writeFileSync(source, wav([FORMAT, { id: 'data', payload: Buffer.alloc(8000, 7) }]));
  const service = await startService({ folder, settings });
  t.after(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return { service, source };
}

const bodyFor = (path: string) => ({ inputs: [{ type: 'local_file_path', path }] });

async function metricsOf({ base }: RunningService, headers: Record<string, string> = {}): Promise<string> {
  const reply = await fetch(`${base}/metrics`, { headers });
  assert.equal(reply.status, 200);
  assert.match(reply.headers.get('content-type') ?? '', /^text\/plain; version=/);
  return reply.text();
}

describe('a service that is observed', () => {
  test('tells Prometheus what it did, and how long each step and the signer took', async (t) => {
    const { service, source } = await serviceWith(t);
    await service.runSync('/v2/sync/c2pa/audio', bodyFor(source));
    await service.waitFor(await service.submit('/v2/c2pa/audio', bodyFor('/nowhere.wav')));
    let metrics = '';
    await until(async () => {
      metrics = await metricsOf(service);
      return metrics.includes('attestream_jobs_ended_total{operation="c2pa-audio",status="failed"} 1');
    });
    for (const sample of [
      'attestream_input_runs_total{operation="c2pa-audio",end="succeeded"} 1',
      'attestream_input_runs_total{operation="c2pa-audio",end="failed"} 1',
      'attestream_jobs_submitted_total{operation="c2pa-audio",form="sync"} 1',
      'attestream_call_duration_seconds_count{call="sign"} 1',
      'attestream_inputs{state="queued"} 0',
      'attestream_store_reachable 1',
    ]) {
      assert.ok(metrics.includes(sample), `${sample}\n${metrics}`);
    }
    for (const phase of ['resolved', 'staged', 'copied', 'signed', 'sealed', 'verified', 'delivered']) {
      assert.match(metrics, new RegExp(`phase_duration_seconds_count\\{operation="c2pa-audio",phase="${phase}"\\} 1`));
    }
    assert.match(
      metrics,
      /http_request_duration_seconds_count\{method="POST",route="\/v2\/sync\/c2pa\/audio",status="200"\} 1/,
    );
    assert.doesNotMatch(metrics, /sound|nowhere/);
  });

  test('keeps its metrics behind the tokens, and its readiness before them', async (t) => {
    const { service } = await serviceWith(t, { SERVICE__AUTH__TOKENS: 'hush' });
    assert.equal((await fetch(`${service.base}/metrics`)).status, 401);
    await metricsOf(service, { authorization: 'Bearer hush' });
    const reply = await fetch(`${service.base}/v2/health/ready`);
    assert.equal(reply.status, 200);
    const { ready, role, identity, store, queue, ...versions } = readiness.parse(await reply.json());
    assert.deepEqual([versions.version, versions.interface_version], [RELEASE.version, '0.1.11']);
    assert.equal(identity?.kind, 'development');
    assert.deepEqual([ready, role, store], [true, 'all', { engine: 'sqlite', reachable: true }]);
    assert.deepEqual(queue, { waiting: 0, capacity: 100_000 });
  });

  test('traces a submission over its job to its inputs, from where the client began', async (t) => {
    const receiver = await startOtlpReceiver(t);
    const { service, source } = await serviceWith(t, { SERVICE__TELEMETRY__OTLP_ENDPOINT: receiver.endpoint });
    const reply = await fetch(`${service.base}/v2/c2pa/audio`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-b7ad6b7169203331-01` },
      body: JSON.stringify({ inputs: [...bodyFor(source).inputs, ...bodyFor('/nowhere.wav').inputs] }),
    });
    const { job_id: id } = (await reply.json()) as { job_id: string };
    await service.waitFor(id);
    await until(() => receiver.spans.length >= 4);
    assert.equal(receiver.spans.length, 4);
    assert.ok(receiver.spans.every(({ traceId }) => traceId === TRACE));
    const named = (name: string) => receiver.spans.filter((span) => span.name === name);
    const [request = assert.fail()] = named('POST /v2/c2pa/audio');
    const [job = assert.fail()] = named('job c2pa-audio');
    const inputs = named('input c2pa-audio').sort((a, b) => indexOf(a) - indexOf(b));
    assert.equal(request.parentSpanId, 'b7ad6b7169203331');
    assert.equal(job.parentSpanId, request.spanId);
    assert.deepEqual(
      inputs.map((span) => [span.parentSpanId, attributeOf(span, 'attestream.end')]),
      [
        [job.spanId, 'succeeded'],
        [job.spanId, 'failed'],
      ],
    );
    assert.ok(inputs[0]?.events.some(({ name }) => name === 'delivered'));
    assert.doesNotMatch(JSON.stringify(receiver.spans), /sound|nowhere/);
  });

  test('does its work while the collector is out of reach', async (t) => {
    const { service, source } = await serviceWith(t, { SERVICE__TELEMETRY__OTLP_ENDPOINT: 'http://127.0.0.1:1' });
    const job = await service.runSync('/v2/sync/c2pa/audio', bodyFor(source));
    assert.equal(job.status, 'succeeded');
  });

  test('calls back, and writes the secrets of the address nowhere', async (t) => {
    const receiver = await startReceiver(t);
    const { service, source } = await serviceWith(t, { SERVICE__CALLBACKS__SECRET: 'a secret of the tests' });
    const body = { ...bodyFor(source), callback_url: `${receiver.url}/hook?token=hush-hush` };
    const id = await service.submit('/v2/c2pa/audio', body);
    await receiver.came(1);
    assert.equal(JSON.parse(receiver.received[0]?.body ?? '').job_id, id);
    assert.doesNotMatch(readFileSync(service.logPath, 'utf8'), /hush|a secret of the tests/);
  });
});

function indexOf(span: OtlpSpan): number {
  return Number(attributeOf(span, 'attestream.input_index'));
}
