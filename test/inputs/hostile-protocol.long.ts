import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { openHttpFile } from '#inputs/http/http-file.ts';
import { type ClientWishes, clientFor, scratchFor } from './http-client-for-tests.ts';
import { speak } from './speaking-server.ts';

/** Long enough for loopback, short enough to be waited for. */
const IDLE_MS = 300;
const DRIP_MS = 20;
const never = new AbortController().signal;
const OK = 'HTTP/1.1 200 OK\r\n';
const PARTIAL = 'HTTP/1.1 206 Partial Content\r\netag: "1"\r\n';

describe('a server whose answer is made to be read in two ways', () => {
  const answers: [string, string, Reason][] = [
    ['two lengths', `${OK}content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef`, 'HTTP_ANSWER_INVALID'],
    ['two lengths in one header', `${OK}content-length: 5, 6\r\n\r\nabcdef`, 'HTTP_ANSWER_INVALID'],
    [
      'a length and chunks',
      `${OK}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
      'HTTP_ANSWER_INVALID',
    ],
    ['a negative length', `${OK}content-length: -1\r\n\r\nabc`, 'HTTP_ANSWER_INVALID'],
    ['a length beyond all numbers', `${OK}content-length: 99999999999999999999\r\n\r\nabc`, 'HTTP_ANSWER_INVALID'],
    [
      'a chunk of a size beyond all numbers',
      `${OK}transfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\na`,
      'HTTP_ANSWER_INVALID',
    ],
    [
      'a chunk longer than its size',
      `${OK}transfer-encoding: chunked\r\n\r\n1\r\nabcdef\r\n0\r\n\r\n`,
      'HTTP_ANSWER_INVALID',
    ],
    ['a header with a NUL', `${OK}x: a\0b\r\ncontent-length: 1\r\n\r\na`, 'HTTP_ANSWER_INVALID'],
    ['a space before a colon', `${OK}content-length : 1\r\n\r\na`, 'HTTP_ANSWER_INVALID'],
    [
      'a second answer behind it',
      `${OK}content-length: 1\r\n\r\na${OK}content-length: 1\r\n\r\nb`,
      'HTTP_ANSWER_INVALID',
    ],
    ['a body packed for its way', `${OK}transfer-encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`, 'HTTP_ENCODED'],
    [
      'another protocol from here on',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      'HTTP_UNREACHABLE',
    ],
    [
      'several ranges in one body',
      `${PARTIAL}content-type: multipart/byteranges; boundary=b\r\ncontent-length: 5\r\n\r\n--b\r\n`,
      'HTTP_ANSWER_INVALID',
    ],
    [
      'a range whose length is another',
      `${PARTIAL}content-range: bytes 0-9/10\r\ncontent-length: 5\r\n\r\nabcde`,
      'HTTP_ANSWER_INVALID',
    ],
    [
      'a range of a file beyond all numbers',
      `${PARTIAL}content-range: bytes 0-4/99999999999999999999\r\ncontent-length: 5\r\n\r\nabcde`,
      'HTTP_ANSWER_INVALID',
    ],
  ];
  for (const [what, answer, reason] of answers) {
    test(`is refused: ${what}`, (t) => refuses(t, reason, (socket) => socket.write(answer, 'latin1')));
  }

  test('is read as it is where chunks have extensions and trailers', async (t) => {
    const answer = `${OK}transfer-encoding: chunked\r\ntrailer: x\r\n\r\n3;a=b\r\nabc\r\n0\r\nx: y\r\n\r\n`;
    assert.equal(await contentFrom(t, (socket) => socket.write(answer)), 'abc');
  });
});

describe('a server that keeps its client busy', () => {
  const drips: [string, string, string][] = [
    ['with one early answer after the other', '', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
    ['with headers by the drop', OK, 'x'],
    ['with one small header after the other', OK, 'x: y\r\n'],
    ['with an extension of a chunk that does not end', `${OK}transfer-encoding: chunked\r\n\r\n1;`, 'x'],
    ['with trailers that do not end', `${OK}transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n`, 'x: y\r\n'],
    ['with chunks of one byte', `${OK}transfer-encoding: chunked\r\n\r\n`, '1\r\na\r\n'],
    ['with a redirect that goes on and on', 'HTTP/1.1 302 Found\r\nlocation: /b\r\n\r\n', 'x'],
    ['with an excuse that goes on and on', 'HTTP/1.1 404 Not Found\r\n\r\n', 'x'],
  ];
  for (const [what, beginning, drop] of drips) {
    for (const flood of [false, true]) {
      test(`is left: ${what}${flood ? ', as fast as it can' : ''}`, (t) =>
        refuses(t, null, (socket) => {
          socket.write(beginning);
          if (flood) pour(socket, drop.repeat(1000));
          else dripInto(socket, drop);
        }));
    }
  }
});

function dripInto(socket: Socket, drop: string): void {
  const timer = setInterval(() => socket.write(drop), DRIP_MS);
  socket.on('close', () => clearInterval(timer));
}

function pour(socket: Socket, drops: string): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(drops));
  };
  socket.on('drain', more);
  more();
}

/** Rejects with an AppError, of that reason unless it is null, and every connection is ended. */
async function refuses(t: TestContext, reason: Reason | null, answer: (socket: Socket) => void): Promise<void> {
  const sockets = new Set<Socket>();
  const remember = (socket: Socket): void => {
    sockets.add(socket);
    answer(socket);
  };
  // Only who keeps the client waiting is waited for.
  await assert.rejects(contentFrom(t, remember, reason === null ? { idleTimeoutMs: IDLE_MS } : {}), (error) => {
    assert.ok(error instanceof AppError, String(error instanceof Error ? error.stack : error));
    if (reason !== null) assert.equal(error.reason, reason, error.message);
    return true;
  });
  for (const socket of sockets) {
    if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
  }
}

/** The content of a file of a server that sends `answer` to each request. */
async function contentFrom(
  t: TestContext,
  answer: (socket: Socket) => void,
  wishes: ClientWishes = {},
): Promise<string> {
  const port = await speak(t, (socket) => socket.on('data', () => answer(socket)));
  const base = `http://127.0.0.1:${port}`;
  const client = clientFor(t, { maxBytes: 100_000, ...wishes });
  const { scratch } = await scratchFor(t);
  try {
    const url = new URL(`${base}/a.mp4`);
    const source = await openHttpFile(client, { url, nameOf: () => 'a.mp4', signal: never, scratch });
    const bytes = await readRange(source, 0, source.sizeBytes, never);
    await source.checkUnchanged?.(never);
    await source.close();
    return bytes.toString();
  } finally {
    await client.close();
  }
}
