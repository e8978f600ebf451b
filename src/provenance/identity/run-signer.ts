import type { Socket } from 'node:net';
import { AppError } from '#errors/app-error.ts';
import { inheritedChannel, serveParent, tellParent } from '#processes/parent.ts';
import type { Signer } from '../signer.ts';
import {
  type Frame,
  type KeyOrder,
  type KeyQuestion,
  type LoadAnswer,
  MAX_PENDING_REQUESTS,
  MAX_REQUEST_BYTES,
  type ProtocolViolation,
  receiveFrames,
  type SignerAnswer,
  STATUS,
  sendFrame,
  type ToSigner,
} from '../signer-protocol.ts';
import { describeCredential } from '../signing-identity.ts';
import { loadCredential } from './load-signing-identity.ts';

// A process that holds signing keys. It reads the files of credentials, signs the data that its clients send, without parsing it, and
// does nothing else.

/** A process that sends requests. */
interface Client {
  readonly channel: Socket;
  /** Requests that the service decides on, in the order of the questions to it. */
  readonly undecided: Frame[];
  pendingCount: number;
}

/** The keys by their numbers. */
const signers = new Map<number, Signer>();
const clients = new Map<number, Client>();
/** True once requests are read: not before the first keys were loaded. */
let isServing = false;

serveParent(async (message: ToSigner, channel) => {
  if (message.type === 'start') answerService(await start(message));
  else if (message.type === 'load') answerService([await load(message.key)]);
  else if (message.type === 'keep') await keep(message.keys);
  else if (message.type === 'ping') answerService([]);
  else if (message.type === 'decide') decide(message.clientId, message.isAllowed);
  else if (channel !== undefined) welcome(message.clientId, channel);
});

async function start({ clientIds, keys }: ToSigner & { readonly type: 'start' }): Promise<LoadAnswer[]> {
  for (const [index, clientId] of clientIds.entries()) welcome(clientId, inheritedChannel(index));
  const loaded = await Promise.all(keys.map(load));
  isServing = true;
  for (const [clientId, client] of clients) serve(clientId, client);
  return loaded;
}

/** Loads a credential, beside those that were loaded before. */
async function load({ settings, stateDir, process, current, key }: KeyOrder): Promise<LoadAnswer> {
  try {
    const loaded = await loadCredential(settings, stateDir);
    const credential = await describeCredential(loaded, settings, { process, key: key ?? -1 });
    const isCurrent = current?.certificateChain.join() === credential.certificateChain.join();
    const number = isCurrent ? current.key : key;
    if (number === null) {
      await loaded.signer.close?.();
      return { isOther: true };
    }
    const replaced = signers.get(number);
    signers.set(number, loaded.signer);
    await replaced?.close?.();
    return { credential: { ...credential, key: number } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { error: error.toData() };
  }
}

async function keep(keys: readonly number[]): Promise<void> {
  for (const [key, signer] of signers) {
    if (keys.includes(key)) continue;
    signers.delete(key);
    await signer.close?.();
  }
}

function welcome(clientId: number, channel: Socket): void {
  const client = { channel, undecided: [], pendingCount: 0 };
  clients.set(clientId, client);
  // The channel of a worker that exits fails.
  channel.on('error', () => channel.destroy());
  channel.on('close', () => clients.delete(clientId));
  if (isServing) serve(clientId, client);
}

/** Answers the oldest undecided request of a client. */
function decide(clientId: number, isAllowed: boolean): void {
  const client = clients.get(clientId);
  const request = client?.undecided.shift();
  if (client !== undefined && request !== undefined) void answer(client, request, isAllowed);
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
      client.undecided.push(request);
      tellParent<never, KeyQuestion>({ event: { askingClientId: clientId, key: request.code } });
    },
    (problem) => refuse(clientId, client, problem),
  );
}

/** Disconnects a client that violates the protocol, and reports it to the service: the process may be taken over. */
function refuse(clientId: number, { channel }: Client, problem: string): void {
  tellParent<never, ProtocolViolation>({ event: { clientId, problem } });
  channel.destroy();
}

/** Signs and sends the answer. A client that does not read its answers gets no more of them. */
async function answer(client: Client, request: Frame, isAllowed: boolean): Promise<void> {
  const isSent = sendFrame(client.channel, isAllowed ? await answerOf(request) : failureOf(request, 'no input runs'));
  // A channel that is destroyed never drains, and nothing more is taken from it.
  if (!isSent) await new Promise((resolve) => client.channel.once('drain', resolve));
  client.pendingCount -= 1;
}

async function answerOf(request: Frame): Promise<Frame> {
  const signer = signers.get(request.code);
  // The signer was restarted after the files of this key were replaced, or cannot load it now.
  if (signer === undefined) return failureOf(request, 'its files were replaced, or it cannot be loaded now');
  try {
    return { id: request.id, code: STATUS.signature, body: await signer.sign(request.body) };
  } catch (error) {
    return failureOf(request, error instanceof Error ? error.message : 'unknown');
  }
}

function failureOf({ id }: Frame, problem: string): Frame {
  return { id, code: STATUS.failure, body: Buffer.from(`the key could not sign (${problem})`) };
}

function answerService(answer: SignerAnswer): void {
  tellParent({ answer });
}
