import type { Socket } from 'node:net';
import { AppError } from '#errors/app-error.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import type { Signer } from '../signer.ts';
import {
  type Frame,
  MAX_PENDING_REQUESTS,
  MAX_REQUEST_BYTES,
  type ProtocolViolation,
  receiveFrames,
  type SignerAnswer,
  type SignerOrder,
  STATUS,
  sendFrame,
  type ToSigner,
} from '../signer-protocol.ts';
import { describeIdentity } from '../signing-identity.ts';
import { loadSigningIdentity } from './load-signing-identity.ts';

// The process that holds the signing key. It reads the identity's files, signs the data that its clients send, without
// parsing it, and does nothing else.

/** A process that sends requests. */
interface Client {
  readonly id: number;
  readonly channel: Socket;
}

let signer: Signer | null = null;
const waitingClients: Client[] = [];

serveParent(async (message: ToSigner, channel) => {
  if (message.type === 'start') answerService(await start(message.order));
  else if (message.type === 'ping') answerService({ pong: true });
  else if (channel !== undefined) welcome({ id: message.clientId, channel });
});

async function start({ signing, dataDir, clientIds, expected }: SignerOrder): Promise<SignerAnswer> {
  for (const [index, id] of clientIds.entries()) welcome({ id, channel: inheritedChannel(index) });
  try {
    const loaded = await loadSigningIdentity(signing, dataDir);
    const identity = await describeIdentity(loaded, signing.private_key_path);
    if (expected !== null && expected.join() !== identity.certificateChain.join()) {
      throw new AppError('IDENTITY_REPLACED', { file: loaded.file });
    }
    signer = loaded.signer;
    for (const client of waitingClients.splice(0)) serve(client, signer);
    return { identity };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { error: error.toData() };
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
    tellParent<never, ProtocolViolation>({ event: { clientId: id, problem } });
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

function answerService(answer: SignerAnswer): void {
  tellParent({ answer });
}
