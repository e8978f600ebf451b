import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { formatTraceParent, parseTraceParent, startOtlpTracing } from '#telemetry/otlp-tracing.ts';
import type { Tracing } from '#telemetry/telemetry.ts';
import { HANG_MS } from '../support/jobs/test-jobs.ts';
import { attributeOf, startOtlpReceiver } from '../support/servers/otlp-receiver.ts';
import { JOB_ID, jobReport, runReport } from './reports.ts';

const FROM_CLIENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

async function tracingTo(t: TestContext, status = 200) {
  const receiver = await startOtlpReceiver(t, { status });
  const failures: string[] = [];
  const tracing = startOtlpTracing({
    endpoint: receiver.endpoint,
    service: { name: 'attestream', version: '9.9.9' },
    failed: (message) => failures.push(message),
    exportTimeoutMs: HANG_MS,
  });
  return { ...receiver, tracing, failures };
}

function requestOf(tracing: Tracing, traceParent?: string) {
  return tracing.startRequest({ method: 'POST', route: '/v2/c2pa/video', traceParent });
}

describe('traces over OTLP', () => {
  test('lead from the request over its job to the runs of its inputs, with their phases', async (t) => {
    const { tracing, spans, services } = await tracingTo(t);
    const request = requestOf(tracing);
    request.end(200);
    const { traceParent } = request;
    tracing.runEnded(runReport({ traceParent }));
    tracing.jobFinished(jobReport({ traceParent }));
    await tracing.close();

    assert.deepEqual([...services], ['attestream']);
    const [requestSpan, inputSpan, jobSpan] = ['POST', 'input', 'job'].map((start) => {
      const span = spans.find(({ name }) => name.startsWith(start));
      assert(span !== undefined, start);
      return span;
    });
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    assert.equal(jobSpan?.parentSpanId, requestSpan?.spanId);
    assert.equal(inputSpan?.parentSpanId, jobSpan?.spanId);
    assert.equal(jobSpan?.startTimeUnixNano, '1700000000000000000');
    assert.deepEqual(
      inputSpan?.events.map(({ name, timeUnixNano }) => [name, timeUnixNano]),
      [
        ['resolved', '1700000000005000000'],
        ['copied', '1700000000025000000'],
        ['signed', '1700000000026000000'],
      ],
    );
    assert.equal(inputSpan && attributeOf(inputSpan, 'attestream.job_id'), JOB_ID);
  });

  test('go on from the trace that the client began', async (t) => {
    const { tracing, spans } = await tracingTo(t);
    requestOf(tracing, FROM_CLIENT).end(200);
    await tracing.close();
    assert.deepEqual(
      spans.map(({ traceId, parentSpanId }) => [traceId, parentSpanId]),
      [['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']],
    );
  });

  test('are not recorded where the client does not record its own', async (t) => {
    const { tracing, spans } = await tracingTo(t);
    const request = requestOf(tracing, FROM_CLIENT.replace(/01$/, '00'));
    request.end(200);
    tracing.runEnded(runReport({ traceParent: request.traceParent }));
    await tracing.close();
    assert.deepEqual(spans, []);
  });

  test('begin anew where the header of the client is not one', async (t) => {
    const { tracing, spans } = await tracingTo(t);
    requestOf(tracing, '00-nonsense').end(503);
    await tracing.close();
    assert.equal(spans.length, 1);
    assert.equal(spans[0]?.parentSpanId, undefined);
    assert.equal(spans[0]?.status.code, 2);
  });

  test('leave out jobs that were submitted untraced', async (t) => {
    const { tracing, spans } = await tracingTo(t);
    tracing.runEnded(runReport({ traceParent: null }));
    tracing.jobFinished(jobReport({ traceParent: null }));
    await tracing.close();
    assert.deepEqual(spans, []);
  });

  test('mark what failed', async (t) => {
    const { tracing, spans } = await tracingTo(t);
    const { traceParent } = requestOf(tracing, FROM_CLIENT);
    tracing.runEnded(runReport({ traceParent, end: 'failed', reason: 'SOURCE_EMPTY' }));
    tracing.jobFinished(jobReport({ traceParent, status: 'failed' }));
    await tracing.close();
    assert.deepEqual(
      spans.map(({ status }) => status.code),
      [2, 2],
    );
  });

  test('are given up within a bound where the collector refuses them, and the log is told', async (t) => {
    const { tracing, failures } = await tracingTo(t, 400);
    requestOf(tracing).end(200);
    await tracing.close();
    assert.ok(failures.length > 0);
    for (const failure of failures) assert.doesNotMatch(failure, /^\{|\bat .+:\d+:\d+/);
  });
});

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('a traceparent header', () => {
  for (const flags of ['00', '01', '03']) {
    test(`is read with the flags ${flags}`, () => {
      const sampled = flags !== '00';
      assert.deepEqual(parseTraceParent(`00-${TRACE}-${SPAN}-${flags}`), { traceId: TRACE, spanId: SPAN, sampled });
    });
  }

  test('is written as it is read', () => {
    const parent = { traceId: TRACE, spanId: SPAN, sampled: true };
    assert.deepEqual(parseTraceParent(formatTraceParent(parent)), parent);
  });

  test('of a later version may say more', () => {
    assert.equal(parseTraceParent(`01-${TRACE}-${SPAN}-01-more`)?.spanId, SPAN);
  });

  for (const header of [
    undefined,
    '',
    `00-${TRACE}-${SPAN}-01-more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
  ]) {
    test(`is ignored where it is "${header}"`, () => assert.equal(parseTraceParent(header), null));
  }
});
