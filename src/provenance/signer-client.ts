import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { callRecorder } from '#telemetry/run-report.ts';
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
import { type CredentialDescription, type IdentityDescription, signerProcessesOf } from './signing-identity.ts';

/** Limits the time of a signature, a restart of the signer process included. */
const SIGN_TIMEOUT_MS = 30_000;

/** A request that waits for its answer. */
interface PendingRequest {
  readonly credential: CredentialDescription;
  readonly data: Uint8Array;
  readonly resolve: (signature: Buffer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The parts of an identity that a manifest is signed with. */
interface SigningParts {
  /** Signs claims. */
  readonly signer: Signer;
  /** Signs the identity assertions of the identity's publisher; null where it has none. */
  readonly publisher: Signer | null;
  /** The addresses of its time-stamp authorities. */
  readonly tsaUrls: readonly string[];
}

/** Signs with the keys of the signer processes, over a channel between this process and each of them. */
export class SignerClient {
  readonly #identities: ReadonlyMap<string, SigningParts>;
  readonly #links: ReadonlyMap<number, SignerLink>;

  constructor(identities: readonly IdentityDescription[], timeoutMs = SIGN_TIMEOUT_MS) {
    this.#links = new Map(signerProcessesOf(identities).map((process) => [process, new SignerLink(timeoutMs)]));
    this.#identities = new Map(
      identities.map((identity) => {
        const { name, publisher, tsaUrls } = identity;
        const published = publisher && this.#signerWith(publisher);
        return [name, { signer: this.#signerWith(identity), publisher: published, tsaUrls }];
      }),
    );
  }

  /** Returns the parts of an identity, by its name. */
  identityOf(name: string): SigningParts {
    const identity = this.#identities.get(name);
    if (identity === undefined) throw new Error(`there is no identity "${name}"`);
    return identity;
  }

  /** Uses the channels that a process inherits, one to each signer process. */
  connectAll(channelOf: (index: number) => Socket): void {
    for (const [index, link] of [...this.#links.values()].entries()) link.connect(channelOf(index));
  }

  /** Uses a channel to a signer process, or to one that took the place of it. Pending requests are sent again. */
  connect(channel: Socket, process: number): void {
    this.#linkTo(process).connect(channel);
  }

  #signerWith(credential: CredentialDescription): Signer {
    const { algorithm, certificateChain, signatureSizeBytes } = credential;
    const link = this.#linkTo(credential.process);
    return {
      algorithm,
      certificateChain: certificateChain.map((der) => Buffer.from(der, 'base64')),
      signatureSizeBytes,
      sign: (data) => callRecorder.measure('sign', () => link.sign(credential, data)),
    };
  }

  #linkTo(process: number): SignerLink {
    const link = this.#links.get(process);
    assert(link !== undefined, 'a channel leads to a process that holds a key of the identities');
    return link;
  }
}

/** The requests to one signer process. */
class SignerLink {
  readonly #timeoutMs: number;
  readonly #pending = new Map<number, PendingRequest>();
  /** Requests that the signer has not answered, also those that timed out here. */
  readonly #sent = new Set<number>();
  #channel: Socket | null = null;
  #nextId = 1;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

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

  sign(credential: CredentialDescription, data: Uint8Array): Promise<Buffer> {
    if (data.length > MAX_REQUEST_BYTES) {
      return Promise.reject(new Error(`no more than ${MAX_REQUEST_BYTES} bytes can be signed, not ${data.length}`));
    }
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const timer = setTimeout(() => this.#timeOut(id), this.#timeoutMs);
    this.#pending.set(id, { credential, data, resolve, reject, timer });
    this.#sendPending();
    return promise;
  }

  /** Sends the next requests, as many as the signer accepts at the same time. */
  #sendPending(): void {
    if (this.#channel === null) return;
    for (const [id, { credential, data }] of this.#pending) {
      if (this.#sent.size >= MAX_PENDING_REQUESTS) return;
      if (this.#sent.has(id)) continue;
      this.#sent.add(id);
      sendFrame(this.#channel, { id, code: credential.key, body: data });
    }
  }

  #settle({ id, code, body }: Frame): void {
    this.#sent.delete(id);
    const pending = this.#remove(id);
    this.#sendPending();
    if (pending === undefined) return;
    if (code !== STATUS.signature) pending.reject(new Error(body.toString('utf8')));
    else if (body.length === pending.credential.signatureSizeBytes) pending.resolve(body);
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
