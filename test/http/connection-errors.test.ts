import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import { answerConnectionError } from '#http/hooks/error-replies.ts';

test('a request that did not arrive whole in time is answered 408 with the error body, and its connection ends', async (t) => {
  const server = createServer((socket) =>
    answerConnectionError(Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
  );
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk;
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 408 [\s\S]*\r\nConnection: close/);
  assert.equal(JSON.parse(body).error.code, 'REQUEST_TIMEOUT');
});
