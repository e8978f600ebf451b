import { Socket } from 'node:net';
import { AppError } from '#errors/app-error.ts';
import type { Signer } from '../signer.ts';
import {
  FIRST_CHANNEL,
  type Frame,
  type FromSigner,
  MAX_PENDING_REQUESTS,
  MAX_REQUEST_BYTES,
  receiveFrames,
  type SignerOrder,
  STATUS,
  sendFrame,
  type ToSigner,
} from '../signer-protocol.ts';
import { describeIdentity } from '../signing-identity.ts';
import { loadSigningIdentity } from './load-signing-identity.ts';

// The process that holds the signing key. It reads the identity's files, signs the data that its clients send, without
// parsing it, and does nothing else. It is killed when the service exits.

/** A process that sends requests. */
interface Client {
  readonly id: number;
  readonly channel: Socket;
}

let signer: Signer | null = null;
const waitingClients: Client[] = [];

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
process.on('message', (message: ToSigner, channel: Socket | undefined) => {
  if (message.type === 'start') void start(message.order);
  else if (message.type === 'ping') send({ type: 'pong' });
  else if (channel !== undefined) welcome({ id: message.clientId, channel });
});

async function start({ signing, dataDir, clientIds, expected }: SignerOrder): Promise<void> {
  for (const [index, id] of clientIds.entries()) welcome({ id, channel: new Socket({ fd: FIRST_CHANNEL + index }) });
  try {
    const loaded = await loadSigningIdentity(signing, dataDir);
    const identity = await describeIdentity(loaded, signing.private_key_path);
    if (expected !== null && expected.join() !== identity.certificateChain.join()) {
      throw new AppError('IDENTITY_REPLACED', { file: loaded.file });
    }
    signer = loaded.signer;
    send({ type: 'ready', identity });
    for (const client of waitingClients.splice(0)) serve(client, signer);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    send({ type: 'failed', error: error.toData() });
  }
}

function welcome(client: Client): void {
  // The channel of a worker that exits fails.
  client.channel.on('error', () => client.channel.destroy());
  if (signer === null) waitingClients.push(client);
  else serve(client, signer);
}

/** Disconnects a client that violates the protocol, and reports it to the service: the process may be taken over. */
function serve({ id, channel }: Client, ready: Signer): void {
  let pendingCount = 0;
  const refuse = (problem: string): void => {
    send({ type: 'violation', clientId: id, problem });
    channel.destroy();
  };
  receiveFrames(
    channel,
    MAX_REQUEST_BYTES,
    (request) => {
      if (pendingCount >= MAX_PENDING_REQUESTS) return refuse('it sent more requests than it may have pending');
      pendingCount += 1;
      void answer(channel, ready, request).then(() => {
        pendingCount -= 1;
      });
    },
    refuse,
  );
}

/** Signs and sends the answer. A client that does not read its answers gets no more of them. */
async function answer(client: Socket, { sign }: Signer, { id, body }: Frame): Promise<void> {
  let isSent: boolean;
  try {
    isSent = sendFrame(client, id, await sign(body));
  } catch (error) {
    const text = error instanceof Error ? error.message : 'unknown';
    isSent = sendFrame(client, id, Buffer.from(`the key could not sign (${text})`), STATUS.failure);
  }
  // A channel that is destroyed never drains, and nothing more is taken from it.
  if (!isSent) await new Promise((resolve) => client.once('drain', resolve));
}

/** Ignores failures: when the service has exited, `disconnect` ends the process. */
function send(message: FromSigner): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
