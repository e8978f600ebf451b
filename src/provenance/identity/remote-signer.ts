import type { Socket } from 'node:net';
import type { Signer, SigningAlgorithm } from './signer.ts';
import { ANSWER, MAX_ANSWER_BYTES, MAX_SIGNED_BYTES, receiveFrames, sendFrame } from './signer-frames.ts';
import type { IdentityDescription } from './signing-identity.ts';

/** A signature has to be there in this time, a restart of the signer process included. */
const SIGN_TIMEOUT_MS = 30_000;

/** Data that waits for its signature. */
interface Pending {
  readonly data: Uint8Array;
  readonly resolve: (signature: Buffer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Signs with the key of the signer process, over a channel that only this process and the signer have. */
export class RemoteSigner implements Signer {
  readonly algorithm: SigningAlgorithm;
  readonly certificateChain: readonly Buffer[];
  readonly signatureSizeBytes: number;
  readonly #timeoutMs: number;
  readonly #pending = new Map<number, Pending>();
  #socket: Socket | null = null;
  #nextId = 1;

  constructor({ algorithm, certificateChain, signatureSizeBytes }: IdentityDescription, timeoutMs = SIGN_TIMEOUT_MS) {
    this.algorithm = algorithm;
    this.certificateChain = certificateChain.map((der) => Buffer.from(der, 'base64'));
    this.signatureSizeBytes = signatureSizeBytes;
    this.#timeoutMs = timeoutMs;
  }

  /** Takes the channel to the signer, or to the one that took the place of a signer that ended. What waits is asked again. */
  connect(socket: Socket): void {
    this.#socket?.destroy();
    this.#socket = socket;
    receiveFrames(socket, MAX_ANSWER_BYTES, (id, body) => this.#take(id, body));
    // An end without an answer is followed by the next channel, or by the time-out.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = null;
    });
    for (const [id, { data }] of this.#pending) sendFrame(socket, id, data);
  }

  sign(data: Uint8Array): Promise<Buffer> {
    if (data.length > MAX_SIGNED_BYTES) {
      return Promise.reject(new Error(`no more than ${MAX_SIGNED_BYTES} bytes can be signed, not ${data.length}`));
    }
    const id = this.#nextId;
    this.#nextId = (id + 1) >>> 0;
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const timer = setTimeout(() => this.#giveUp(id), this.#timeoutMs);
    this.#pending.set(id, { data, resolve, reject, timer });
    if (this.#socket !== null) sendFrame(this.#socket, id, data);
    return promise;
  }

  #take(id: number, body: Buffer): void {
    const pending = this.#end(id);
    if (pending === undefined) return;
    const answer = Buffer.from(body.subarray(1));
    if (body[0] !== ANSWER.signature) pending.reject(new Error(answer.toString('utf8')));
    else if (answer.length === this.signatureSizeBytes) pending.resolve(answer);
    else pending.reject(new Error('the signer process sent a signature of another size'));
  }

  #giveUp(id: number): void {
    this.#end(id)?.reject(new Error(`the signer process did not answer within ${this.#timeoutMs} ms`));
  }

  #end(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    clearTimeout(pending?.timer);
    return pending;
  }
}
