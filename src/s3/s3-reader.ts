import { addAbortSignal, type Readable } from 'node:stream';
import type { GetObjectCommandInput, GetObjectCommandOutput, HeadObjectCommandOutput } from '@aws-sdk/client-s3';
import { freeMemory } from '#bytes/buffers.ts';
import { backoffMs, pause } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import { leavesBytes } from './content-encoding.ts';
import { type S3Address, type S3Object, s3UrlOf } from './s3-address.ts';
import type { S3Connection } from './s3-connection.ts';
import { s3Error } from './sdk/s3-error.ts';

/** A body that breaks off is resumed by another request up to this many times without a byte, with exponential back-off. */
const MAX_RESUMES = 4;
const RESUME_BACKOFF = { firstMs: 200, maxMs: 1600 } as const;

/** `206 Partial Content` says which range it holds, and of how many bytes (RFC 9110 §14.4). */
const CONTENT_RANGE = /^bytes (\d+)-(\d+)\/(\d+)$/;

/** The type that stores record when none was given. */
const UNKNOWN_TYPE = /^(application|binary)\/octet-stream$/i;

/** An object with its first bytes. */
export interface OpenedS3Object {
  readonly object: S3Object;
  readonly head: Buffer;
  /** The object's `Content-Type`; absent when unknown. */
  readonly mediaType?: string;
}

/** Reads from S3 over one connection. Throws AppErrors that name the address. */
export class S3Reader {
  readonly #connection: S3Connection;

  constructor(connection: S3Connection) {
    this.#connection = connection;
  }

  /** The identity of the server: equal for all objects that it can copy to each other. */
  get store(): object {
    return this.#connection.client;
  }

  /** Finds an object and reads its first bytes with one request. */
  async open(at: S3Address, headBytes: number, signal: AbortSignal): Promise<OpenedS3Object> {
    const answer = await this.#get(at, { Range: `bytes=0-${headBytes - 1}` }, signal);
    // No range of an empty object can be satisfied.
    if (answer === null) return { object: { ...at, sizeBytes: 0, etag: '' }, head: Buffer.alloc(0) };
    const object = { ...at, sizeBytes: answer.totalBytes, etag: answer.etag };
    const head = Buffer.allocUnsafeSlow(Math.min(headBytes, answer.totalBytes));
    let filled = 0;
    for await (const bytes of this.#stream(object, 0, head.length, answer, signal)) {
      head.set(bytes, filled);
      filled += bytes.length;
    }
    return { object, head, ...(answer.mediaType !== undefined && { mediaType: answer.mediaType }) };
  }

  /**
   * Streams the bytes `[offset, offset + length)` of an object, and goes on where an answer breaks off. Rejects with
   * SOURCE_CHANGED where the object is no longer the one that was found. A piece is valid until the next one is asked for.
   */
  range(object: S3Object, offset: number, length: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    return this.#stream(object, offset, offset + length, null, signal);
  }

  /** Asks how an empty object is sent, of which nothing is read. Throws what a read would. */
  async checkEmpty(object: S3Object, abortSignal: AbortSignal): Promise<void> {
    const { sdk, client } = this.#connection;
    try {
      const command = new sdk.HeadObjectCommand({ Bucket: object.bucket, Key: object.key });
      const head = await client.send(command, { abortSignal });
      if ((head.ContentLength ?? 0) !== 0) throw changed(object);
      refuseOtherBytes(object, head);
    } catch (error) {
      abortSignal.throwIfAborted();
      throw s3Error(error, object, 'read');
    }
  }

  /** Lists every object whose key starts with the address's, page by page, in the order of their keys' bytes. */
  list(prefix: S3Address, signal: AbortSignal): AsyncGenerator<S3Object> {
    return listObjects(this.#connection, prefix, signal);
  }

  async *#stream(
    object: S3Object,
    offset: number,
    end: number,
    answered: RangeAnswer | null,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let position = offset;
    let resumes = 0;
    for (let next = answered; position < end; next = null) {
      if (resumes > 0) await pause(backoffMs(resumes, RESUME_BACKOFF), signal);
      const answer = next ?? (await this.#getRange(object, position, end, signal));
      const from = position;
      const isLast = (): boolean => position === from && resumes === MAX_RESUMES;
      try {
        for await (const bytes of addAbortSignal(signal, answer.body) as AsyncIterable<Uint8Array>) {
          position += bytes.length;
          if (position > end) throw unusableAnswer(object);
          yield bytes;
          freeMemory(bytes);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (isLast() || error instanceof AppError) throw s3Error(error, object, 'read');
      }
      if (isLast())
        throw new AppError('S3_UNREACHABLE', { address: s3UrlOf(object), problem: 'its answers break off' });
      resumes = position > from ? 1 : resumes + 1;
    }
  }

  /** Asks for a range of the object that was found, and of no other. */
  async #getRange(object: S3Object, offset: number, end: number, signal: AbortSignal): Promise<RangeAnswer> {
    const condition = object.etag === '' ? {} : { IfMatch: object.etag };
    const answer = await this.#get(object, { ...condition, Range: `bytes=${offset}-${end - 1}` }, signal);
    const isSame = answer !== null && answer.etag === object.etag && answer.totalBytes === object.sizeBytes;
    if (!isSame) {
      answer?.body.destroy();
      throw changed(object);
    }
    if (answer.offset === offset) return answer;
    answer.body.destroy();
    throw unusableAnswer(object);
  }

  /** Requests a range; returns null when the object ends before it. */
  async #get(
    at: S3Address,
    asked: Pick<GetObjectCommandInput, 'Range' | 'IfMatch'>,
    abortSignal: AbortSignal,
  ): Promise<RangeAnswer | null> {
    abortSignal.throwIfAborted();
    const { sdk, client } = this.#connection;
    try {
      const command = new sdk.GetObjectCommand({ Bucket: at.bucket, Key: at.key, ...asked });
      return rangeAnswer(at, await client.send(command, { abortSignal }));
    } catch (error) {
      abortSignal.throwIfAborted();
      const status = (error as Partial<GetObjectCommandOutput>).$metadata?.httpStatusCode;
      if (status === 416) return null;
      if (status === 412) throw changed(at, error);
      throw s3Error(error, at, 'read');
    }
  }
}

/** A range of an object, and the headers that describe it. */
interface RangeAnswer {
  readonly offset: number;
  /** Size of the whole object, in bytes. */
  readonly totalBytes: number;
  readonly etag: string;
  readonly mediaType: string | undefined;
  readonly body: Readable;
}

/** Returns what an answer holds. Throws `S3_RANGE_REFUSED`, and what `refuseOtherBytes` throws. */
function rangeAnswer(at: S3Address, answer: GetObjectCommandOutput): RangeAnswer {
  const { Body, ContentRange, ContentType, ETag } = answer;
  const body = Body as Readable;
  try {
    refuseOtherBytes(at, answer);
  } catch (error) {
    body.destroy();
    throw error;
  }
  const [, offset, , totalBytes] = CONTENT_RANGE.exec(ContentRange ?? '') ?? [];
  if (offset === undefined || totalBytes === undefined) {
    body.destroy();
    throw unusableAnswer(at);
  }
  return {
    offset: Number(offset),
    totalBytes: Number(totalBytes),
    etag: ETag ?? '',
    mediaType: ContentType === undefined || UNKNOWN_TYPE.test(ContentType) ? undefined : ContentType,
    body,
  };
}

/**
 * Throws `S3_ENCODED` for an object that browsers decode to other bytes than its own, which are read here, and `S3_REDIRECTED` for one
 * in whose place they are sent elsewhere.
 */
function refuseOtherBytes(
  at: S3Address,
  { ContentEncoding = '', WebsiteRedirectLocation = '' }: Omit<HeadObjectCommandOutput, '$metadata'>,
): void {
  if (!leavesBytes(ContentEncoding)) {
    throw new AppError('S3_ENCODED', { address: s3UrlOf(at), encoding: ContentEncoding.slice(0, 40) });
  }
  if (WebsiteRedirectLocation !== '') throw new AppError('S3_REDIRECTED', { address: s3UrlOf(at) });
}

function changed(at: S3Address, cause?: unknown): AppError {
  return new AppError('SOURCE_CHANGED', { name: s3UrlOf(at) }, { cause });
}

function unusableAnswer(at: S3Address): AppError {
  return new AppError('S3_RANGE_REFUSED', { address: s3UrlOf(at) });
}

/**
 * Lists every object whose key starts with the address's, page by page, in the order of their keys' bytes. Throws the
 * AppErrors of `s3Error`, or the signal's reason.
 */
export async function* listObjects(
  { sdk, client }: S3Connection,
  { bucket, key }: S3Address,
  signal?: AbortSignal,
): AsyncGenerator<S3Object> {
  signal?.throwIfAborted();
  // Keys may hold characters that XML cannot, such as control characters.
  const asked = { Bucket: bucket, Prefix: key, EncodingType: 'url' } as const;
  try {
    for await (const page of sdk.paginateListObjectsV2({ client }, asked, { abortSignal: signal })) {
      for (const { Key = '', Size = 0, ETag = '' } of page.Contents ?? []) {
        yield { bucket, key: decodedKey(Key), sizeBytes: Size, etag: ETag };
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw s3Error(error, { bucket, key }, 'list');
  }
}

/** Decodes a key of a listing with the encoding "url": as in the query of a URL, where "+" is a space. */
export function decodedKey(key: string): string {
  return decodeURIComponent(key.replaceAll('+', ' '));
}
