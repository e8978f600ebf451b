import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GetObjectCommandInput, GetObjectCommandOutput, ListObjectsV2CommandOutput } from '@aws-sdk/client-s3';
import { freeMemory } from '#bytes/free-memory.ts';
import { AppError } from '#errors/app-error.ts';
import { type S3Address, s3UrlOf } from './s3-address.ts';
import type { S3Connection } from './s3-connection.ts';
import { s3Error } from './s3-error.ts';

/** How often an answer that broke off is gone on with, and the pause before the first time, which doubles. */
const MAX_RESUMES = 4;
const FIRST_RESUME_PAUSE_MS = 200;

/** `206 Partial Content` says which range it holds, and of how many bytes (RFC 9110 §14.4). */
const CONTENT_RANGE = /^bytes (\d+)-(\d+)\/(\d+)$/;

/** Says nothing: it is what stores note down where nobody told them a type. */
const UNKNOWN_TYPE = /^(application|binary)\/octet-stream$/i;

/** An object as it was when it was found: its ETag changes with its bytes. */
export interface S3Object extends S3Address {
  readonly sizeBytes: number;
  readonly etag: string;
}

/** An object with its first bytes. */
export interface OpenedS3Object {
  readonly object: S3Object;
  readonly head: Buffer;
  /** What the object's `Content-Type` says, if it says anything. */
  readonly mediaType?: string;
}

/** Everything that is read from S3, over one connection. Rejects with AppErrors that name the place. */
export class S3Reader {
  readonly #connection: S3Connection;

  constructor(connection: S3Connection) {
    this.#connection = connection;
  }

  /** The same value for whatever the same server keeps. */
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

  /** Lists every object whose key starts with the address's, page by page, in the order of their keys' bytes. */
  async *list(prefix: S3Address, abortSignal: AbortSignal): AsyncGenerator<S3Object> {
    const { bucket } = prefix;
    let token: string | undefined;
    do {
      const page = await this.#listPage(prefix, token, abortSignal);
      for (const { Key, Size, ETag } of page.Contents ?? []) {
        yield { bucket, key: decodedKey(Key ?? ''), sizeBytes: Size ?? 0, etag: ETag ?? '' };
      }
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async #listPage(
    { bucket, key }: S3Address,
    token: string | undefined,
    abortSignal: AbortSignal,
  ): Promise<ListObjectsV2CommandOutput> {
    abortSignal.throwIfAborted();
    const { sdk, client } = this.#connection;
    try {
      return await client.send(
        // Keys may hold characters that XML cannot, such as control characters.
        new sdk.ListObjectsV2Command({ Bucket: bucket, Prefix: key, ContinuationToken: token, EncodingType: 'url' }),
        { abortSignal },
      );
    } catch (error) {
      abortSignal.throwIfAborted();
      throw s3Error(error, { bucket, key }, 'list');
    }
  }

  async *#stream(
    object: S3Object,
    offset: number,
    end: number,
    answered: RangeAnswer | null,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let position = offset;
    for (let resumes = 0; position < end; resumes += 1) {
      if (resumes > 0) await sleep(FIRST_RESUME_PAUSE_MS * 2 ** (resumes - 1), undefined, { signal });
      const answer =
        answered !== null && resumes === 0 ? answered : await this.#getRange(object, position, end, signal);
      try {
        for await (const bytes of addAbortSignal(signal, answer.body) as AsyncIterable<Uint8Array>) {
          position += bytes.length;
          if (position > end) throw unusableAnswer(object);
          yield bytes;
          freeMemory(bytes);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (resumes === MAX_RESUMES || error instanceof AppError) throw s3Error(error, object, 'read');
      }
      if (resumes === MAX_RESUMES && position < end) {
        throw new AppError('S3_UNREACHABLE', { address: s3UrlOf(object), problem: 'its answers break off' });
      }
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

  /** What S3 answers when it is asked for a range; null where the object ends before it. */
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

/** What an answer says of the range that it holds, and the range itself. */
interface RangeAnswer {
  readonly offset: number;
  /** Size of the whole object, in bytes. */
  readonly totalBytes: number;
  readonly etag: string;
  readonly mediaType: string | undefined;
  readonly body: Readable;
}

function rangeAnswer(at: S3Address, { Body, ContentRange, ContentType, ETag }: GetObjectCommandOutput): RangeAnswer {
  const body = Body as Readable;
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

/** A key as a listing with the encoding "url" has it: as in the query of a URL, where "+" is a space. */
export function decodedKey(key: string): string {
  return decodeURIComponent(key.replaceAll('+', ' '));
}

function changed(at: S3Address, cause?: unknown): AppError {
  return new AppError('SOURCE_CHANGED', { name: s3UrlOf(at) }, { cause });
}

function unusableAnswer(at: S3Address): AppError {
  return new AppError('S3_RANGE_REFUSED', { address: s3UrlOf(at) });
}
