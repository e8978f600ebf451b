import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { RequestBodyLimit, receiveBody } from '#http/hooks/request-bodies.ts';

const MAX_BYTES = 100_000;

const limit = new RequestBodyLimit(MAX_BYTES);

/** Receives a body, and returns its memory when it is no longer needed. */
async function received(payload: Readable, announcedBytes = 0): Promise<Buffer> {
  const lease = limit.open();
  try {
    return await receiveBody(payload, { announcedBytes, maxBytes: MAX_BYTES, lease });
  } finally {
    lease.release();
    assert.equal(limit.totalBytes, 0);
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof AppError && error.reason === 'BODY_TOO_LARGE';
}

describe('a body that is received', () => {
  test('is what was sent, in whatever pieces it comes', async () => {
    const piece = fc.uint8Array({ minLength: 1, maxLength: 9_000 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 10 }), async (pieces) => {
        const body = await received(Readable.from(pieces, { objectMode: false }));
        assert.deepEqual(body, Buffer.concat(pieces));
      }),
    );
  });

  test('takes no more than twice its size where it comes byte by byte', async () => {
    const count = 50_000;
    const bytes = Readable.from(Array(count).fill(Buffer.from(' ')), { objectMode: false });
    const body = await received(bytes);
    assert.equal(body.length, count);
    assert.ok(body.buffer.byteLength <= 2 * count, `${body.buffer.byteLength} bytes`);
  });

  test('is refused over the cap, and the rest of it is thrown away', async () => {
    for (const announcedBytes of [0, MAX_BYTES + 1]) {
      const sending = new PassThrough();
      for (let sent = 0; sent <= MAX_BYTES; sent += 10_000) sending.write(Buffer.alloc(10_000));
      await assert.rejects(received(sending, announcedBytes), isTooLarge);
      sending.end();
      await once(sending, 'end');
    }
  });

  test('is no body where the client hangs up', async () => {
    const sending = new PassThrough();
    sending.write('half');
    const receiving = received(sending);
    sending.destroy(new Error('aborted'));
    await assert.rejects(receiving, { message: 'aborted' });
  });
});
