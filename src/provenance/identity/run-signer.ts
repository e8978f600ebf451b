import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { AppError } from '#errors/app-error.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import type { Signer } from '../signer.ts';
import {
  type Frame,
  type IdentityOrder,
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

/** The keys by their numbers. */
const signers = new Map<number, Signer>();
const clients = new Map<number, Client>();
/** The files of the identity, from the first order. */
let files: Pick<SignerOrder, 'signing' | 'dataDir'> | null = null;
/** True once requests are read: not before the identity was loaded. */
let isServing = false;

serveParent(async (message: ToSigner, channel) => {
  if (message.type === 'start') answerService(await start(message.order));
  else if (message.type === 'load') answerService(await load(message.identity));
  else if (message.type === 'keep') keep(message.keys);
  else if (message.type === 'ping') answerService({ pong: true });
  else if (message.type === 'allow') allow(message.client);
  else if (channel !== undefined) welcome(message.client, channel);
});

async function start(order: SignerOrder): Promise<SignerAnswer> {
  for (const [index, client] of order.clients.entries()) welcome(client, inheritedChannel(index));
  files = order;
  const answer = await load(order.identity);
  // Without the identity, requests wait for the signer that is started in the place of this one.
  isServing = 'identity' in answer;
  if (!isServing) return answer;
  for (const [clientId, client] of clients) serve(clientId, client);
  return answer;
}

/** Loads the identity, beside those that were loaded before. */
async function load({ current, key }: IdentityOrder): Promise<SignerAnswer> {
  assert(files !== null, 'an identity is loaded after the start');
  const { signing, dataDir } = files;
  try {
    const loaded = await loadSigningIdentity(signing, dataDir);
    const identity = await describeIdentity(loaded, { name: DEFAULT_IDENTITY, key }, signing.private_key_path);
    const isCurrent = current?.certificateChain.join() === identity.certificateChain.join();
    const named = { ...identity, key: isCurrent ? current.key : key };
    signers.set(named.key, loaded.signer);
    return { identity: named };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { error: error.toData() };
  }
}

function keep(keys: readonly number[]): void {
  for (const key of signers.keys()) if (!keys.includes(key)) signers.delete(key);
}

function welcome({ clientId, keys }: SignerClientState, channel: Socket): void {
  const client = { channel, keys, early: [], pendingCount: 0 };
  clients.set(clientId, client);
  // The channel of a worker that exits fails.
  channel.on('error', () => channel.destroy());
  channel.on('close', () => clients.delete(clientId));
  if (isServing) serve(clientId, client);
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
  if (client.keys.includes(request.code)) return void answer(client, request);
  client.early.push(request);
  const keptBytes = client.early.reduce((sum, { body }) => sum + body.length, 0);
  if (keptBytes > MAX_REQUEST_BYTES) refuse(clientId, client, 'it sent too much for keys that its input may not use');
}

/** Signs and sends the answer. A client that does not read its answers gets no more of them. */
async function answer(client: Client, request: Frame): Promise<void> {
  const isSent = sendFrame(client.channel, await answerOf(request));
  // A channel that is destroyed never drains, and nothing more is taken from it.
  if (!isSent) await new Promise((resolve) => client.channel.once('drain', resolve));
  client.pendingCount -= 1;
}

async function answerOf({ id, code, body }: Frame): Promise<Frame> {
  try {
    const signer = signers.get(code);
    // The signer was restarted after the files of this key were replaced.
    if (signer === undefined) throw new Error('its files were replaced');
    return { id, code: STATUS.signature, body: await signer.sign(body) };
  } catch (error) {
    const text = error instanceof Error ? error.message : 'unknown';
    return { id, code: STATUS.failure, body: Buffer.from(`the key could not sign (${text})`) };
  }
}

function answerService(answer: SignerAnswer): void {
  tellParent({ answer });
}
