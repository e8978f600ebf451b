import assert from 'node:assert/strict';
import { fstatSync } from 'node:fs';
import { test } from 'node:test';
import { Descriptor } from '#bytes/file-source.ts';

test('a file is closed when the running calls have finished, and is not used after that', async () => {
  const file = Descriptor.open(import.meta.filename, 'r');
  const { number } = file;
  const call = Promise.withResolvers<void>();
  const using = file.use(() => call.promise);
  const closed = file.close();
  assert.doesNotThrow(() => fstatSync(number));
  assert.throws(() => file.number, { code: 'ERR_ASSERTION' });
  await assert.rejects(
    file.use(() => Promise.resolve()),
    { code: 'ERR_ASSERTION' },
  );
  call.resolve();
  await using;
  await closed;
  assert.throws(() => fstatSync(number), { code: 'EBADF' });
  await file.close();
});

test('a call that fails lets the file be closed', async () => {
  const file = Descriptor.open(import.meta.filename, 'r');
  await assert.rejects(
    file.use(() => Promise.reject(new Error('the call failed'))),
    /the call failed/,
  );
  await file.close();
});
