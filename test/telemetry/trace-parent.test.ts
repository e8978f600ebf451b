import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatTraceParent, parseTraceParent } from '#telemetry/otlp-tracing.ts';

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
