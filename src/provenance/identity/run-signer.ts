import { Socket } from 'node:net';
import { AppError } from '#errors/app-error.ts';
import { loadSigningIdentity } from './load-signing-identity.ts';
import type { Signer } from './signer.ts';
import { ANSWER, MAX_SIGNED_BYTES, receiveFrames, sendFrame } from './signer-frames.ts';
import { FIRST_CHANNEL, type FromSigner, type SignerOrder, type ToSigner } from './signer-messages.ts';
import { describeIdentity } from './signing-identity.ts';

// The process that holds the signing key. It reads the identity's files, signs what its clients send, and does nothing
// else: nothing of what it gets is parsed. It ends with the service, in whatever way that ends.

/** Signatures of one client that are under way at once: one that asks for many must not keep others waiting. */
const MAX_OUTSTANDING = 4;

let signer: Signer | null = null;
const waitingClients: Socket[] = [];

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
process.on('message', (message: ToSigner, channel: Socket | undefined) => {
  if (message.type === 'start') void start(message.order);
  else if (message.type === 'ping') send({ type: 'pong' });
  else if (channel !== undefined) welcome(channel);
});

async function start({ signing, dataDir, channelCount, expected }: SignerOrder): Promise<void> {
  for (let index = 0; index < channelCount; index += 1) welcome(new Socket({ fd: FIRST_CHANNEL + index }));
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

function welcome(client: Socket): void {
  // A worker that ends takes its channel along.
  client.on('error', () => client.destroy());
  if (signer === null) waitingClients.push(client);
  else serve(client, signer);
}

function serve(client: Socket, { sign }: Signer): void {
  const outstanding = new Set<Promise<void>>();
  receiveFrames(client, MAX_SIGNED_BYTES, (id, data) => {
    const answer: Promise<void> = sign(data)
      .then(
        (signature) => Buffer.concat([Buffer.of(ANSWER.signature), signature]),
        (error: unknown) => failure(error),
      )
      // A client that does not take its answers gets no more of them.
      .then((body) => new Promise<void>((resolve) => sendFrame(client, id, body, () => resolve())))
      .finally(() => outstanding.delete(answer));
    outstanding.add(answer);
    return outstanding.size < MAX_OUTSTANDING ? undefined : Promise.race(outstanding);
  });
}

function failure(error: unknown): Buffer {
  const text = error instanceof Error ? error.message : 'unknown';
  return Buffer.from(`${String.fromCharCode(ANSWER.failure)}the key could not sign (${text})`);
}

/** A service that is gone cannot be told; `disconnect` ends the process. */
function send(message: FromSigner): void {
  process.send?.(message, undefined, undefined, () => undefined);
}
