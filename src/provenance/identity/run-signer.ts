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
  type SignerClientState,
  type SignerOrder,
  STATUS,
  sendFrame,
  type ToSigner,
} from '../signer-protocol.ts';
import { DEFAULT_IDENTITY, describeIdentity } from '../signing-identity.ts';
import { loadSigningIdentity } from './load-signing-identity.ts';

// The process that holds the signing keys. It reads the files of identities, signs the data that its clients send, without
// parsing it, and does nothing else.

/** A process that sends requests. */
interface Client {
  readonly channel: Socket;
  /** The numbers of the keys that it may use: none while no input runs in it. */
  keys: readonly number[];
  /** Requests that arrived before their key was allowed, which the service says over another channel. */
  readonly early: Frame[];
  pendingCount: number;
}

/** The keys by their numbers; none before the identities were loaded. */
const signers = new Map<number, Signer>();
const clients = new Map<number, Client>();

serveParent(async (message: ToSigner, channel) => {
  if (message.type === 'start') answerService(await start(message.order));
  else if (message.type === 'ping') answerService({ pong: true });
  else if (message.type === 'allow') allow(message.client);
  else if (channel !== undefined) welcome(message.client, channel);
});

async function start({ signing, dataDir, clients: inherited, expected }: SignerOrder): Promise<SignerAnswer> {
  for (const [index, client] of inherited.entries()) welcome(client, inheritedChannel(index));
  try {
    const loaded = await loadSigningIdentity(signing, dataDir);
    const identity = await describeIdentity(loaded, { name: DEFAULT_IDENTITY, key: 0 }, signing.private_key_path);
    if (expected !== null && expected.join() !== identity.certificateChain.join()) {
      throw new AppError('IDENTITY_REPLACED', { file: loaded.file });
    }
    signers.set(identity.key, loaded.signer);
    for (const [clientId, client] of clients) serve(clientId, client);
    return { identity };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { error: error.toData() };
  }
}

function welcome({ clientId, keys }: SignerClientState, channel: Socket): void {
  const client = { channel, keys, early: [], pendingCount: 0 };
  clients.set(clientId, client);
  // The channel of a worker that exits fails.
  channel.on('error', () => channel.destroy());
  channel.on('close', () => clients.delete(clientId));
  if (signers.size > 0) serve(clientId, client);
}

/** Changes the keys of a client, and answers requests that waited for them. */
function allow({ clientId, keys }: SignerClientState): void {
  const client = clients.get(clientId);
  if (client === undefined) return;
  client.keys = keys;
  for (const request of client.early.splice(0)) take(clientId, client, request);
}

function serve(clientId: number, client: Client): void {
  receiveFrames(
    client.channel,
    MAX_REQUEST_BYTES,
    (request) => {
      if (client.pendingCount >= MAX_PENDING_REQUESTS) {
        return refuse(clientId, client, 'it sent more requests than it may have pending');
      }
      client.pendingCount += 1;
      take(clientId, client, request);
    },
    (problem) => refuse(clientId, client, problem),
  );
}

/** Disconnects a client that violates the protocol, and reports it to the service: the process may be taken over. */
function refuse(clientId: number, { channel }: Client, problem: string): void {
  tellParent<never, ProtocolViolation>({ event: { clientId, problem } });
  channel.destroy();
}

/** Answers a request whose key is allowed, and keeps another one until it is: no more of them than one may be large. */
function take(clientId: number, client: Client, request: Frame): void {
  const signer = client.keys.includes(request.code) ? signers.get(request.code) : undefined;
  if (signer !== undefined) return void answer(client, signer, request);
  client.early.push(request);
  const keptBytes = client.early.reduce((sum, { body }) => sum + body.length, 0);
  if (keptBytes > MAX_REQUEST_BYTES) refuse(clientId, client, 'it sent too much for keys that its input may not use');
}

/** Signs and sends the answer. A client that does not read its answers gets no more of them. */
async function answer(client: Client, signer: Signer, request: Frame): Promise<void> {
  const isSent = sendFrame(client.channel, await answerOf(signer, request));
  // A channel that is destroyed never drains, and nothing more is taken from it.
  if (!isSent) await new Promise((resolve) => client.channel.once('drain', resolve));
  client.pendingCount -= 1;
}

async function answerOf({ sign }: Signer, { id, body }: Frame): Promise<Frame> {
  try {
    return { id, code: STATUS.signature, body: await sign(body) };
  } catch (error) {
    const text = error instanceof Error ? error.message : 'unknown';
    return { id, code: STATUS.failure, body: Buffer.from(`the key could not sign (${text})`) };
  }
}

function answerService(answer: SignerAnswer): void {
  tellParent({ answer });
}
