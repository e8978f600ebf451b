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
  type SignerClientState,
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
  /** The numbers of the keys that it may use: none while no input runs in it. */
  keys: readonly number[];
  /** Requests for keys that this process was not told of, in the order of its questions to the service. */
  readonly early: Frame[];
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
  else if (message.type === 'allow') allow(message.client);
  else if (message.type === 'decide') decide(message.client, message.isRunning);
  else if (channel !== undefined) welcome(message.client, channel);
});

async function start({ clients: inherited, keys }: ToSigner & { readonly type: 'start' }): Promise<LoadAnswer[]> {
  for (const [index, client] of inherited.entries()) welcome(client, inheritedChannel(index));
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

function welcome({ clientId, keys }: SignerClientState, channel: Socket): void {
  const client = { channel, keys, early: [], pendingCount: 0 };
  clients.set(clientId, client);
  // The channel of a worker that exits fails.
  channel.on('error', () => channel.destroy());
  channel.on('close', () => clients.delete(clientId));
  if (isServing) serve(clientId, client);
}

function allow({ clientId, keys }: SignerClientState): void {
  const client = clients.get(clientId);
  if (client !== undefined) client.keys = keys;
}

/**
 * Decides on the oldest request of a client for a key that it was not allowed before. One for another key than those of the input that
 * runs violates the protocol; one of an input that has ended does not.
 */
function decide({ clientId, keys }: SignerClientState, isRunning: boolean): void {
  const client = clients.get(clientId);
  const request = client?.early.shift();
  if (client === undefined || request === undefined) return;
  const isAllowed = keys.includes(request.code);
  if (isRunning && !isAllowed) refuse(clientId, client, OTHER_KEY);
  else void answer(client, request, isAllowed);
}

const OTHER_KEY = 'it asked for a key that its input may not use';

function serve(clientId: number, client: Client): void {
  receiveFrames(
    client.channel,
    MAX_REQUEST_BYTES,
    (request) => {
      if (client.pendingCount >= MAX_PENDING_REQUESTS) {
        return refuse(clientId, client, 'it sent more requests than it may have pending');
      }
      client.pendingCount += 1;
      if (client.keys.includes(request.code)) return void answer(client, request);
      client.early.push(request);
      tellParent<never, KeyQuestion>({ event: { askingClientId: clientId } });
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
async function answer(client: Client, request: Frame, isAllowed = true): Promise<void> {
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
