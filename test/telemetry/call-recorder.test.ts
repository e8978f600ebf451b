import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CallRecorder } from '#telemetry/run-report.ts';

describe('the recorder of calls', () => {
  test('keeps the durations of calls by their names, until they are taken', async () => {
    const recorder = new CallRecorder();
    assert.equal(await recorder.measure('sign', async () => 'signature'), 'signature');
    await Promise.all([
      recorder.measure('s3 PutObject', async () => 1),
      recorder.measure('s3 PutObject', async () => 2),
    ]);
    const taken = recorder.take();
    assert.deepEqual(
      Object.entries(taken).map(([name, durations]) => [name, durations.length]),
      [
        ['sign', 1],
        ['s3 PutObject', 2],
      ],
    );
    assert.ok(
      Object.values(taken)
        .flat()
        .every((ms) => ms >= 0),
    );
    assert.deepEqual(recorder.take(), {});
  });

  test('measures what fails as well', async () => {
    const recorder = new CallRecorder();
    await assert.rejects(
      recorder.measure('sign', () => Promise.reject(new Error('no key'))),
      /no key/,
    );
    assert.equal(recorder.take()['sign']?.length, 1);
  });

  test('stays small however many calls an input makes', async () => {
    const recorder = new CallRecorder();
    for (let call = 0; call < 1500; call += 1) await recorder.measure('s3 GetObject', async () => undefined);
    assert.equal(recorder.take()['s3 GetObject']?.length, 1000);
  });
});
