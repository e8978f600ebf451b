import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { s3Retry } from '#s3/sdk/s3-error.ts';

type Failure = Parameters<ReturnType<typeof s3Retry>['refreshRetryTokenForRetry']>[1];

/** The pauses that are made before a request which fails again and again is given up. */
async function pausesFor(failure: Failure): Promise<number[]> {
  const strategy = s3Retry();
  const pauses: number[] = [];
  let token = await strategy.acquireInitialRetryToken('');
  for (;;) {
    try {
      token = await strategy.refreshRetryTokenForRetry(token, failure);
    } catch {
      return pauses;
    }
    pauses.push(token.getRetryDelay());
  }
}

function sumOf(pauses: readonly number[]): number {
  return pauses.reduce((sum, pause) => sum + pause, 0);
}

function answered(status: number, name: string): NonNullable<Failure['error']> {
  const error = new Error(name) as NonNullable<Failure['error']>;
  return Object.assign(error, { name, $metadata: { httpStatusCode: status } });
}

describe('a request to S3 that fails', () => {
  for (const [what, failure] of [
    ['is slowed down', { errorType: 'THROTTLING', error: answered(503, 'SlowDown') }],
    ['finds the server busy', { errorType: 'TRANSIENT', error: answered(503, 'ServiceUnavailable') }],
    ['conflicts with another one', { errorType: 'CLIENT_ERROR', error: answered(409, 'OperationAborted') }],
  ] as const) {
    test(`is made again for many seconds, and not for ever, where it ${what}`, async () => {
      const pauses = await pausesFor(failure);
      assert.ok(sumOf(pauses) > 8_000 && sumOf(pauses) < 40_000, String(pauses));
    });
  }

  test('is made again a few times where the server fails or the connection does', async () => {
    const failures: Failure[] = [
      { errorType: 'TRANSIENT', error: answered(500, 'InternalError') },
      { errorType: 'SERVER_ERROR', error: answered(501, 'NotImplemented') },
      { errorType: 'TRANSIENT' },
    ];
    for (const failure of failures) assert.equal((await pausesFor(failure)).length, 4);
  });

  test('is not made again where it is at fault itself', async () => {
    assert.deepEqual(await pausesFor({ errorType: 'CLIENT_ERROR', error: answered(403, 'AccessDenied') }), []);
  });

  test('waits as long as the server asks for, within bounds', async () => {
    const inSeconds = (seconds: number): Failure => ({
      errorType: 'THROTTLING',
      retryAfterHint: new Date(Date.now() + seconds * 1000),
    });
    const [pause = 0] = await pausesFor(inSeconds(10));
    assert.ok(pause > 5_000, `${pause} ms`);
    for (const longest of await pausesFor(inSeconds(86_400))) assert.ok(longest <= 20_000, `${longest} ms`);
  });
});
