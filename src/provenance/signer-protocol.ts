import type { Socket } from 'node:net';
import type { CredentialSettings } from '#config/identities.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { CredentialDescription } from './signing-identity.ts';

// The service and the signer process exchange messages over the IPC channel. Clients of the signer send frames over a channel
// of their own: a request holds the data to sign, an answer the signature.

/** The order to load a credential as its files are now. Only signer processes get the settings of signers, with passphrases. */
export interface KeyOrder {
  readonly settings: CredentialSettings;
  /** A folder of the signer's own for its state. */
  readonly stateDir: string;
  /** The number of this process. */
  readonly process: number;
  /** The credential that is loaded already: its number stays that of the same certificates. */
  readonly current: Pick<CredentialDescription, 'key' | 'certificateChain'> | null;
  /** The number of the key of any other certificates; null where no other ones are wanted. */
  readonly key: number | null;
}

/**
 * A message to the signer process. The first one, `start`, has the numbers of the clients whose channels it inherits, in that order,
 * and the keys that they use. `load` loads a key; `keep` drops all keys but some. A `client` is sent with its channel; `decide` answers
 * the oldest `KeyQuestion` about one.
 */
export type ToSigner =
  | { readonly type: 'start'; readonly clientIds: readonly number[]; readonly keys: readonly KeyOrder[] }
  | { readonly type: 'load'; readonly key: KeyOrder }
  | { readonly type: 'keep'; readonly keys: readonly number[] }
  | { readonly type: 'client'; readonly clientId: number }
  | { readonly type: 'decide'; readonly clientId: number; readonly isAllowed: boolean }
  | { readonly type: 'ping' };

/** A loaded credential, or why it cannot be loaded; `isOther` where its files hold certificates that are not wanted. */
export type LoadAnswer =
  | { readonly credential: CredentialDescription }
  | { readonly isOther: true }
  | { readonly error: AppErrorData };

/** The answer of the signer process: to `start` one for each key, to `load` one, to `ping` an empty list. */
export type SignerAnswer = readonly LoadAnswer[];

/** The event of the signer process that a client violated the protocol. */
export interface ProtocolViolation {
  readonly clientId: number;
  readonly problem: string;
}

/** The question of the signer process whether a client may use a key now, which it asks about each request. */
export interface KeyQuestion {
  readonly askingClientId: number;
  readonly key: number;
}

/**
 * A header holds the size of the body and a request's number, both of 32 bits, little-endian, and in 16 bits the number of the
 * key of a request, or the status of an answer.
 */
export const HEADER_BYTES = 10;

/** The statuses of answers. */
export const STATUS = { signature: 0, failure: 1 } as const;

/** Limits a request: a COSE `Sig_structure`, which holds the claim and the certificates. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

/** Limits an answer: a signature, or why there is none. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** Limits the requests of one client that are not answered yet. Another one violates the protocol. */
export const MAX_PENDING_REQUESTS = 4;

/** A message on a channel. */
export interface Frame {
  readonly id: number;
  /** The key of a request, or the status of an answer. */
  readonly code: number;
  readonly body: Buffer;
}

/** Sends a frame. Returns false where the sender should wait for `drain` before it sends more. */
export function sendFrame(
  channel: Socket,
  { id, code, body }: Omit<Frame, 'body'> & { readonly body: Uint8Array },
): boolean {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  frame.writeUInt32LE(body.length, 0);
  frame.writeUInt32LE(id, 4);
  frame.writeUInt16LE(code, 8);
  frame.set(body, HEADER_BYTES);
  return channel.write(frame);
}

/**
 * Takes the frames of a channel as they arrive, of which `MAX_PENDING_REQUESTS` keeps the number small. Calls `refuse` where the peer
 * sends a frame over the limit.
 */
export function receiveFrames(
  channel: Socket,
  maxBodyBytes: number,
  take: (frame: Frame) => void,
  refuse: (problem: string) => void,
): void {
  const nextFrame = frameReader(channel, maxBodyBytes);
  channel.on('readable', () => {
    try {
      for (let frame = nextFrame(); frame !== null && !channel.destroyed; frame = nextFrame()) take(frame);
    } catch (error) {
      refuse((error as Error).message);
    }
  });
}

/**
 * Returns a function that reads the next whole frame; null where it has not arrived yet. It throws where a frame
 * is too large.
 */
function frameReader(channel: Socket, maxBodyBytes: number): () => Frame | null {
  let header: Buffer | null = null;
  return () => {
    header ??= readExactly(channel, HEADER_BYTES);
    if (header === null) return null;
    const sizeBytes = header.readUInt32LE(0);
    if (sizeBytes > maxBodyBytes) throw new Error(`a frame of ${sizeBytes} bytes is over the limit`);
    const body = sizeBytes === 0 ? Buffer.alloc(0) : readExactly(channel, sizeBytes);
    if (body === null) return null;
    const frame = { id: header.readUInt32LE(4), code: header.readUInt16LE(8), body };
    header = null;
    return frame;
  };
}

/** Reads bytes that have arrived; null where there are fewer. A stream that has ended returns the rest, which is no frame. */
function readExactly(channel: Socket, sizeBytes: number): Buffer | null {
  const bytes: Buffer | null = channel.read(sizeBytes);
  return bytes?.length === sizeBytes ? bytes : null;
}

/**
 * Stops reading from a channel that is sent to another process. Node reads on until the other process has received it, and
 * would drop the bytes. It has no documented way to stop that for a child's pipe: `pause` stops the events, not the reading,
 * and `pauseOnConnect` exists for listening servers only, which other processes could connect to.
 */
export function stopReading(channel: Socket): Socket {
  const { _handle: handle } = channel as Socket & { _handle: { reading: boolean; readStop(): void } | null };
  if (handle === null) return channel;
  handle.reading = false;
  handle.readStop();
  return channel;
}
