import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A slow client sends its request in so many pieces, and takes its answer in as many bites. */
const PIECES = 20;
const PAUSE_MS = 50;

/** The outcome of a request. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Posts a body as slowly as a client on a bad line does, over a connection of its own. */
export async function postSlowly(url: URL, body: string): Promise<Answer> {
  const socket = connect(Number(url.port), url.hostname);
  try {
    await once(socket, 'connect');
    for (const piece of piecesOf(requestText(url, body))) {
      socket.write(piece);
      await sleep(PAUSE_MS);
    }
    return parseAnswer(await readSlowly(socket));
  } finally {
    socket.destroy();
  }
}

function requestText({ pathname, host }: URL, body: string): string {
  const length = Buffer.byteLength(body);
  const head = `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`;
  return `${head}Content-Length: ${length}\r\nConnection: close\r\n\r\n${body}`;
}

function piecesOf(text: string): string[] {
  const length = Math.ceil(text.length / PIECES);
  return Array.from({ length: PIECES }, (_, index) => text.slice(index * length, (index + 1) * length));
}

async function readSlowly(socket: ReturnType<typeof connect>): Promise<string> {
  let text = '';
  for await (const chunk of socket) {
    text += chunk;
    await sleep(PAUSE_MS);
  }
  return text;
}

function parseAnswer(text: string): Answer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), body };
}
