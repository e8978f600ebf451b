import assert from 'node:assert/strict';
import type { StoredObject } from '#bytes/byte-source.ts';
import type { CopyRun } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import type { S3Address } from '#s3/s3-address.ts';
import type { S3Part, S3Upload, S3Writer } from '#s3/s3-writer.ts';
import { BackgroundRequests, type RequestLimit } from './background-requests.ts';
import { type ObjectPart, type PartLayout, planParts } from './object-parts.ts';
import { PartBuffer, type PartBufferPool } from './part-buffers.ts';
import type { UploadNote } from './upload-journal.ts';

/** Concurrent copies of parts by the server. */
const MAX_CONCURRENT_COPIES = 4;

/** The parameters of an upload. */
export interface UploadContext {
  readonly writer: S3Writer;
  readonly at: S3Address;
  readonly contentType: string;
  /** The journal's note of the upload, by which it is aborted when this process is lost. */
  readonly note: UploadNote;
  /** Bounds what is sent at once, and so the memory that it takes. */
  readonly requestLimit: RequestLimit;
  /** Shared by all objects of the output. */
  readonly buffers: PartBufferPool;
  /** Reports progress to the service. */
  readonly heartbeat: () => void;
  /** Aborts all requests. */
  readonly signal: AbortSignal;
}

/** A finished upload: bytes to be put by one request, or parts that one request makes an object. */
export type Finished =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'parts'; readonly upload: S3Upload; readonly parts: readonly S3Part[] };

/**
 * One object on its way to S3, written at positions in any order, in bounded memory: a part is sent when it is full, and
 * one that waits for a hole to be filled waits in memory. An object that fits into one part is not sent before it is finished.
 */
export class ObjectUpload {
  readonly #context: UploadContext;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #filling = new Map<number, PartBuffer>();
  readonly #requests: BackgroundRequests;
  readonly #parts: S3Part[] = [];
  #layout: PartLayout;
  #upload: Promise<S3Upload> | null = null;
  #copying: Promise<void> = Promise.resolve();
  #writtenBytes = 0;
  #end = 0;

  constructor(context: UploadContext, layout: PartLayout) {
    this.#context = context;
    this.#layout = layout;
    this.#signal = AbortSignal.any([context.signal, this.#stop.signal]);
    this.#requests = new BackgroundRequests(context.requestLimit, (error) => this.#stop.abort(error));
  }

  /**
   * Has the server copy what it can of an object's ranges. The first is waited for: a server that does not copy gets all
   * bytes from here.
   */
  async copyFrom(object: StoredObject, sizeBytes: number, runs: readonly CopyRun[]): Promise<void> {
    // Without an ETag nothing would tell that the object is still the one that is read.
    if (object.etag === '' || !this.#context.writer.isSameStore(object.store)) return;
    const layout = planParts(sizeBytes, runs);
    const [first, ...others] = layout.copied;
    if (first === undefined) return;
    try {
      await this.#copyPart(first, object);
    } catch (error) {
      if (isRefusalToCopy(error)) return;
      throw error;
    }
    this.#layout = layout;
    this.#copying = this.#copyAll(others, object);
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#requests.throwIfFailed(this.#context.signal);
    for (let taken = 0; taken < bytes.length; ) {
      const part = this.#layout.partAt(position + taken);
      const at = position + taken - part.position;
      const length = Math.min(bytes.length - taken, part.length - at);
      if (part.copiedFrom === undefined) await this.#fill(part, bytes.subarray(taken, taken + length), at);
      taken += length;
    }
    this.#writtenBytes += bytes.length;
    this.#end = Math.max(this.#end, position + bytes.length);
  }

  /** True when the written ranges, which do not overlap, have no gap. */
  get isWhole(): boolean {
    return this.#writtenBytes === this.#end;
  }

  /** The end of what was written so far. */
  get sizeBytes(): number {
    return this.#end;
  }

  /**
   * Sends what is left; every byte was written. An object that fits into one part, and has at most `keptBytes`, is not
   * sent but returned.
   */
  async finish(keptBytes = Number.POSITIVE_INFINITY): Promise<Finished> {
    this.#requests.throwIfFailed(this.#context.signal);
    assert(this.isWhole, 'every byte of an object is written before it is finished');
    const rest = [...this.#filling];
    const [[, only] = []] = rest;
    if (this.#upload === null && rest.length <= 1 && (only?.writtenBytes ?? 0) <= keptBytes) {
      return { kind: 'bytes', bytes: only?.bytes ?? Buffer.alloc(0) };
    }
    this.#filling.clear();
    for (const [number, buffer] of rest) await this.#send(number, buffer);
    await Promise.all([this.#requests.settled(), this.#copying]);
    this.#requests.throwIfFailed(this.#context.signal);
    return { kind: 'parts', upload: await this.#begun(), parts: this.#parts.filter((part) => part !== undefined) };
  }

  /** Aborts all requests. Everything that is in S3 by then is in the note. Safe to call again. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error('the upload was given up'));
    await Promise.all([this.#requests.settled(), this.#copying, this.#upload?.catch(() => undefined)]);
    this.#filling.clear();
  }

  async #fill(part: ObjectPart, bytes: Uint8Array, at: number): Promise<void> {
    const known = this.#filling.get(part.number);
    const buffer = known ?? new PartBuffer(part.length, this.#layout.isKnown, this.#context.buffers);
    if (known === undefined) this.#filling.set(part.number, buffer);
    buffer.write(bytes, at);
    if (buffer.writtenBytes < part.length || this.#layout.isSingle) return;
    this.#filling.delete(part.number);
    await this.#send(part.number, buffer);
  }

  /** Sends a part in the background; waits only while too many requests run. */
  async #send(number: number, buffer: PartBuffer): Promise<void> {
    const { writer, buffers } = this.#context;
    await this.#requests.start(buffer.bytes.length, async () => {
      const upload = await this.#begun();
      this.#parts[number - 1] = await writer.putPart(upload, number, buffer.bytes, this.#signal);
      buffers.release(buffer.bytes);
      this.#context.heartbeat();
    });
  }

  async #copyAll(parts: readonly ObjectPart[], object: StoredObject): Promise<void> {
    const turns = parts.values();
    const copyNext = async (): Promise<void> => {
      for (const part of turns) {
        await this.#requests.run(() => this.#copyPart(part, object));
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT_COPIES }, copyNext));
  }

  async #copyPart({ number, length, copiedFrom }: ObjectPart, object: StoredObject): Promise<void> {
    assert(copiedFrom !== undefined);
    const upload = await this.#begun();
    const from = { bucket: object.bucket, key: object.key, etag: object.etag, offset: copiedFrom, length };
    this.#parts[number - 1] = await this.#context.writer.copyPart(upload, number, from, this.#signal);
    this.#context.heartbeat();
  }

  #begun(): Promise<S3Upload> {
    this.#upload ??= this.#begin();
    return this.#upload;
  }

  async #begin(): Promise<S3Upload> {
    const { writer, at, contentType, note } = this.#context;
    // If this process is lost before it learns the upload's id, these are not it. Without the right to list, none are known.
    const others = await writer.uploadsTo(at).catch(() => []);
    await note.beginning(
      at,
      others.map(({ uploadId }) => uploadId),
    );
    const upload = await writer.beginUpload(at, contentType, this.#signal);
    await note.begun(upload);
    return upload;
  }
}

const COPY_REFUSALS: ReadonlySet<string> = new Set([
  'S3_REQUEST_REFUSED',
  'S3_ACCESS_DENIED',
  'S3_BUSY',
  'S3_CONFLICT',
  'S3_REGION_WRONG',
]);

/**
 * Returns true for the error of a server that copies no parts, or none from this bucket: not all that speak as
 * S3 does can.
 */
function isRefusalToCopy(error: unknown): boolean {
  return error instanceof AppError && COPY_REFUSALS.has(error.reason);
}
