import type { Socket } from 'node:net';
import type { ApiErrorResponse } from '#contract/error.ts';
import { AppError } from '#errors/app-error.ts';
import { COMMON_HEADERS, statusOf } from './error-replies.ts';

/** Answers what Node could not read as a request, and closes the connection: nothing sensible can follow on it. */
export function answerConnectionError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(error.code);
  const answer: ApiErrorResponse = { error: { code: refusal.code, message: refusal.message } };
  const body = JSON.stringify(answer);
  const status = statusOf(refusal);
  const head = [
    `HTTP/1.1 ${status} ${status === 408 ? 'Request Timeout' : 'Bad Request'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
    ...Object.entries(COMMON_HEADERS).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

function refusalOf(code: string | undefined): AppError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('REQUEST_TOO_SLOW', {});
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('REQUEST_MALFORMED', { problem: 'has a longer path or more headers than are taken' });
    default:
      return new AppError('REQUEST_MALFORMED', { problem: 'is not HTTP/1.1 as it should be' });
  }
}
