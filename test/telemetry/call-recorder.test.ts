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
      Object.entries(taken).map(([name, { succeeded, durationsMs }]) => [name, succeeded, durationsMs.length]),
      [
        ['sign', 1, 1],
        ['s3 PutObject', 2, 2],
      ],
    );
    assert.ok(
      Object.values(taken)
        .flatMap(({ durationsMs }) => durationsMs)
        .every((ms) => ms >= 0),
    );
    assert.deepEqual(recorder.take(), {});
  });

  test('measures what fails as well, and counts it apart, unless the error is an answer', async () => {
    const recorder = new CallRecorder();
    const fail = () => Promise.reject(new Error('not there'));
    await assert.rejects(recorder.measure('s3 HeadObject', fail), /not there/);
    await assert.rejects(
      recorder.measure('s3 HeadObject', fail, () => true),
      /not there/,
    );
    const { succeeded, failed, durationsMs } = recorder.take()['s3 HeadObject'] ?? {};
    assert.deepEqual([succeeded, failed, durationsMs?.length], [1, 1, 2]);
  });

  test('stays small however many calls an input makes', async () => {
    const recorder = new CallRecorder();
    for (let call = 0; call < 1500; call += 1) await recorder.measure('s3 GetObject', async () => undefined);
    const { succeeded, durationsMs } = recorder.take()['s3 GetObject'] ?? {};
    assert.deepEqual([succeeded, durationsMs?.length], [1500, 1000]);
  });
});
