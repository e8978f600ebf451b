import type { Socket } from 'node:net';
import type { Signer } from './signer.ts';
import {
  type Frame,
  MAX_ANSWER_BYTES,
  MAX_PENDING_REQUESTS,
  MAX_REQUEST_BYTES,
  receiveFrames,
  STATUS,
  sendFrame,
} from './signer-protocol.ts';
import type { IdentityDescription } from './signing-identity.ts';

/** Limits the time of a signature, a restart of the signer process included. */
const SIGN_TIMEOUT_MS = 30_000;

/** A request that waits for its answer. */
interface PendingRequest {
  readonly identity: IdentityDescription;
  readonly data: Uint8Array;
  readonly resolve: (signature: Buffer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Signs with the keys of the signer process, over a channel between this process and the signer. */
export class SignerClient {
  readonly #timeoutMs: number;
  readonly #signers: ReadonlyMap<string, Signer>;
  readonly #pending = new Map<number, PendingRequest>();
  /** Requests that the signer has not answered, also those that timed out here. */
  readonly #sent = new Set<number>();
  #channel: Socket | null = null;
  #nextId = 1;

  constructor(identities: readonly IdentityDescription[], timeoutMs = SIGN_TIMEOUT_MS) {
    this.#timeoutMs = timeoutMs;
    this.#signers = new Map(identities.map((identity) => [identity.name, this.#signerWith(identity)]));
  }

  /** Returns the signer of an identity, by its name. */
  signerOf(name: string): Signer {
    const signer = this.#signers.get(name);
    if (signer === undefined) throw new Error(`there is no identity "${name}"`);
    return signer;
  }

  /** Uses a channel to the signer, or to a restarted one. Pending requests are sent again. */
  connect(channel: Socket): void {
    this.#channel?.destroy();
    this.#channel = channel;
    receiveFrames(
      channel,
      MAX_ANSWER_BYTES,
      (answer) => this.#settle(answer),
      () => channel.destroy(),
    );
    // Pending requests wait for the next channel, or for their timeout.
    channel.on('error', () => undefined);
    channel.on('close', () => {
      if (this.#channel === channel) this.#channel = null;
    });
    this.#sent.clear();
    this.#sendPending();
  }

  #signerWith(identity: IdentityDescription): Signer {
    const { algorithm, certificateChain, signatureSizeBytes } = identity;
    return {
      algorithm,
      certificateChain: certificateChain.map((der) => Buffer.from(der, 'base64')),
      signatureSizeBytes,
      sign: (data) => this.#sign(identity, data),
    };
  }

  #sign(identity: IdentityDescription, data: Uint8Array): Promise<Buffer> {
    if (data.length > MAX_REQUEST_BYTES) {
      return Promise.reject(new Error(`no more than ${MAX_REQUEST_BYTES} bytes can be signed, not ${data.length}`));
    }
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const timer = setTimeout(() => this.#timeOut(id), this.#timeoutMs);
    this.#pending.set(id, { identity, data, resolve, reject, timer });
    this.#sendPending();
    return promise;
  }

  /** Sends the next requests, as many as the signer accepts at the same time. */
  #sendPending(): void {
    if (this.#channel === null) return;
    for (const [id, { identity, data }] of this.#pending) {
      if (this.#sent.size >= MAX_PENDING_REQUESTS) return;
      if (this.#sent.has(id)) continue;
      this.#sent.add(id);
      sendFrame(this.#channel, { id, code: identity.key, body: data });
    }
  }

  #settle({ id, code, body }: Frame): void {
    this.#sent.delete(id);
    this.#sendPending();
    const pending = this.#remove(id);
    if (pending === undefined) return;
    if (code !== STATUS.signature) pending.reject(new Error(body.toString('utf8')));
    else if (body.length === pending.identity.signatureSizeBytes) pending.resolve(body);
    else pending.reject(new Error('the signer process sent a signature of another size'));
  }

  #timeOut(id: number): void {
    this.#remove(id)?.reject(new Error(`the signer process did not answer within ${this.#timeoutMs} ms`));
  }

  #remove(id: number): PendingRequest | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    clearTimeout(pending?.timer);
    return pending;
  }
}
