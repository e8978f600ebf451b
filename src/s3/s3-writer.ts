import { createHash } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { type S3Address, type S3Object, s3UrlOf } from './s3-address.ts';
import type { S3Connection } from './s3-connection.ts';
import { decodedKey, listObjects } from './s3-reader.ts';
import { s3Error } from './sdk/s3-error.ts';

/** Objects that one request deletes at most. */
const OBJECTS_PER_DELETION = 1000;

/** S3's codes for an object that does not have the ETag with which it was to be deleted. */
const NOT_THE_SAME: ReadonlySet<string> = new Set(['PreconditionFailed', 'NoSuchKey', 'ConditionalRequestConflict']);

/** User-defined metadata of an object: which attempt at which input put it. */
const MARK_NAME = 'attestream-attempt';

/** A multipart upload that was begun. */
export interface S3Upload extends S3Address {
  readonly uploadId: string;
}

/** An uploaded part: its number, ETag and checksum, all of which S3 requires at completion. */
export interface S3Part {
  readonly PartNumber: number;
  readonly ETag: string;
}

/** An object that is to be deleted. */
export interface S3Deletion {
  readonly key: string;
  /** Deletes the object only while it has this ETag, on servers that support it (AWS, Ceph). Without quotation marks. */
  readonly etag?: string;
}

/** A running upload, as a listing describes it. */
interface S3ListedUpload {
  readonly uploadId: string;
  readonly initiatedAt: Date;
}

/** A range of an object that S3 is to copy itself. */
interface S3CopyRange extends S3Address {
  /** The object must still have it. */
  readonly etag: string;
  readonly offset: number;
  readonly length: number;
}

/** Writes to S3 over one connection. Throws AppErrors that name the address. */
export class S3Writer {
  /** Stands in the metadata of every object that is put; null for none. */
  readonly mark: string | null;
  readonly #connection: S3Connection;

  constructor(connection: S3Connection, mark: string | null = null) {
    this.#connection = connection;
    this.mark = mark;
  }

  /** Tells whether the server can copy an object that was opened over this store. */
  isSameStore(store: object): boolean {
    return store === this.#connection.client;
  }

  /**
   * Puts an object whole and returns its ETag. If the answer is lost on the way, the mark of the object that stands there
   * tells that it was put.
   */
  async put(at: S3Address, bytes: Uint8Array, contentType: string, signal?: AbortSignal): Promise<string> {
    const { sdk, client } = this.#connection;
    const { bucket: Bucket, key: Key } = at;
    const command = new sdk.PutObjectCommand({ Bucket, Key, Body: bytes, ContentType: contentType, ...this.#metadata });
    try {
      const { ETag } = await client.send(command, options(signal));
      return etagOf(at, ETag);
    } catch (cause) {
      const standing = this.mark === null ? null : await this.#headAt(at).catch(() => null);
      if (standing?.Metadata?.[MARK_NAME] === this.mark) return etagOf(at, standing?.ETag);
      throw s3Error(cause, at, 'write');
    }
  }

  async beginUpload(at: S3Address, contentType: string, signal?: AbortSignal): Promise<S3Upload> {
    const { sdk, client } = this.#connection;
    const { bucket: Bucket, key: Key } = at;
    const command = new sdk.CreateMultipartUploadCommand({ Bucket, Key, ContentType: contentType, ...this.#metadata });
    const { UploadId: uploadId } = await sent(at, () => client.send(command, options(signal)));
    if (uploadId === undefined) throw unusableAnswer(at);
    return { bucket: Bucket, key: Key, uploadId };
  }

  async putPart(upload: S3Upload, number: number, bytes: Uint8Array, signal?: AbortSignal): Promise<S3Part> {
    const { sdk, client } = this.#connection;
    const command = new sdk.UploadPartCommand({ ...partOf(upload, number), Body: bytes });
    const answer = await sent(upload, () => client.send(command, options(signal)));
    return partAnswer(upload, number, answer);
  }

  /** Has S3 copy a range into a part. Rejects with SOURCE_CHANGED where the object is no longer the one that was read. */
  async copyPart(upload: S3Upload, number: number, from: S3CopyRange, signal?: AbortSignal): Promise<S3Part> {
    const { sdk, client } = this.#connection;
    const command = new sdk.UploadPartCopyCommand({
      ...partOf(upload, number),
      CopySource: `${from.bucket}/${from.key.split('/').map(encodeURIComponent).join('/')}`,
      CopySourceIfMatch: from.etag,
      CopySourceRange: `bytes=${from.offset}-${from.offset + from.length - 1}`,
    });
    try {
      const { CopyPartResult: answer = {} } = await client.send(command, options(signal));
      return partAnswer(upload, number, answer);
    } catch (cause) {
      if (statusOf(cause) === 412) throw new AppError('SOURCE_CHANGED', { name: s3UrlOf(from) }, { cause });
      throw s3Error(cause, from, 'read');
    }
  }

  /**
   * Makes an object of an upload's parts, in their order. If the answer is lost on the way, the request is repeated,
   * and S3 then knows no such upload any more: the object that stands there tells.
   */
  async completeUpload(upload: S3Upload, parts: readonly S3Part[]): Promise<string> {
    const { sdk, client } = this.#connection;
    const command = new sdk.CompleteMultipartUploadCommand({
      ...uploadOf(upload),
      MultipartUpload: { Parts: [...parts] },
    });
    try {
      const { ETag } = await client.send(command);
      return etagOf(upload, ETag);
    } catch (cause) {
      const expected = etagOfParts(parts);
      if (expected !== null && (await this.etagAt(upload).catch(() => null)) === expected) return expected;
      throw s3Error(cause, upload, 'write');
    }
  }

  /** Aborts an upload and frees its parts. Does nothing when it is gone already. */
  async abortUpload(upload: S3Upload): Promise<void> {
    const { sdk, client } = this.#connection;
    const command = new sdk.AbortMultipartUploadCommand(uploadOf(upload));
    await sent(upload, () => client.send(command)).catch((error: unknown) => {
      if (!(error instanceof AppError) || error.reason !== 'S3_OBJECT_MISSING') throw error;
    });
  }

  /** Lists the running uploads to exactly this key, whoever started them. */
  async uploadsTo(at: S3Address): Promise<S3ListedUpload[]> {
    const { sdk, client } = this.#connection;
    const { bucket: Bucket, key: Prefix } = at;
    const found: S3ListedUpload[] = [];
    for (let marker: { KeyMarker?: string; UploadIdMarker?: string } | null = {}; marker !== null; ) {
      const command: InstanceType<typeof sdk.ListMultipartUploadsCommand> = new sdk.ListMultipartUploadsCommand({
        Bucket,
        Prefix,
        EncodingType: 'url',
        ...marker,
      });
      const page = await sent(at, () => client.send(command));
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (decodedKey(Key ?? '') === Prefix && UploadId !== undefined) {
          found.push({ uploadId: UploadId, initiatedAt: Initiated ?? new Date(0) });
        }
      }
      const { IsTruncated, NextKeyMarker, NextUploadIdMarker } = page;
      // Keys come in order, so nothing of this key follows once another one came.
      const isMore = IsTruncated === true && decodedKey(NextKeyMarker ?? '') === Prefix;
      marker =
        isMore && NextUploadIdMarker !== undefined ? { KeyMarker: Prefix, UploadIdMarker: NextUploadIdMarker } : null;
    }
    return found;
  }

  /** Returns the ETag of the object at an address; null for none. */
  async etagAt(at: S3Address): Promise<string | null> {
    const found = await this.#headAt(at);
    return found === null ? null : unquoted(found.ETag ?? '');
  }

  /** Returns the mark of the object at an address; null when there is no object, or one without a mark. */
  async markAt(at: S3Address): Promise<string | null> {
    return (await this.#headAt(at))?.Metadata?.[MARK_NAME] ?? null;
  }

  async #headAt(at: S3Address) {
    const { sdk, client } = this.#connection;
    const { bucket: Bucket, key: Key } = at;
    try {
      return await client.send(new sdk.HeadObjectCommand({ Bucket, Key }));
    } catch (cause) {
      if (statusOf(cause) === 404) return null;
      throw s3Error(cause, at, 'read');
    }
  }

  get #metadata(): { Metadata?: Record<string, string> } {
    return this.mark === null ? {} : { Metadata: { [MARK_NAME]: this.mark } };
  }

  /** Lists the objects whose keys start with the address's, in their order, with ETags without quotation marks. */
  async *list(prefix: S3Address, signal?: AbortSignal): AsyncGenerator<S3Object> {
    for await (const object of listObjects(this.#connection, prefix, signal)) {
      yield { ...object, etag: unquoted(object.etag) };
    }
  }

  /** Deletes objects. One that is gone already is no error, and neither is one that has changed: it stays. */
  async deleteObjects(bucket: string, objects: readonly S3Deletion[]): Promise<void> {
    for (let first = 0; first < objects.length; first += OBJECTS_PER_DELETION) {
      await this.#deleteSome(bucket, objects.slice(first, first + OBJECTS_PER_DELETION));
    }
  }

  async #deleteSome(bucket: string, objects: readonly S3Deletion[]): Promise<void> {
    try {
      await this.#deletion(bucket, objects);
    } catch (error) {
      // A server that has not heard of conditions passes over them, or finds the request malformed.
      const isRefused = error instanceof AppError && error.reason === 'S3_REQUEST_REFUSED';
      if (!isRefused || objects.every(({ etag }) => etag === undefined)) throw error;
      await this.#deletion(
        bucket,
        objects.map(({ key }) => ({ key })),
      );
    }
  }

  async #deletion(bucket: string, objects: readonly S3Deletion[]): Promise<void> {
    const { sdk, client } = this.#connection;
    const Objects = objects.map(({ key: Key, etag }) => ({ Key, ...(etag !== undefined && { ETag: `"${etag}"` }) }));
    const command = new sdk.DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } });
    command.middlewareStack.add(proveByMd5, { step: 'build', name: 'proveByMd5' });
    const { Errors = [] } = await sent({ bucket, key: objects[0]?.key ?? '' }, () => client.send(command));
    const failed = Errors.find(({ Code = '' }) => !NOT_THE_SAME.has(Code));
    if (failed === undefined) return;
    const address = s3UrlOf({ bucket, key: failed.Key ?? '' });
    throw new AppError('S3_REQUEST_REFUSED', { address, status: 200, code: failed.Code ?? 'unknown' });
  }
}

/** Servers older than the checksums of S3 want the body of a deletion to be proven by its MD5; AWS takes either. */
function proveByMd5<Args extends object, Output>(next: (args: Args) => Promise<Output>) {
  return (args: Args): Promise<Output> => {
    const { request } = args as unknown as { request: { headers: Record<string, string>; body: string } };
    request.headers['content-md5'] = createHash('md5').update(request.body).digest('base64');
    return next(args);
  };
}

function options(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}

function uploadOf({ bucket, key, uploadId }: S3Upload) {
  return { Bucket: bucket, Key: key, UploadId: uploadId };
}

function partOf(upload: S3Upload, number: number) {
  return { ...uploadOf(upload), PartNumber: number };
}

async function sent<T>(at: S3Address, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (cause) {
    throw s3Error(cause, at, 'write');
  }
}

/** Returns an uploaded part. Its checksum, if any, has to be repeated when the upload is completed. */
function partAnswer(at: S3Address, number: number, answer: { readonly ETag?: string | undefined }): S3Part {
  const checksums = Object.entries(answer).filter(
    ([name, value]) => name.startsWith('Checksum') && name !== 'ChecksumType' && typeof value === 'string',
  );
  if (answer.ETag === undefined) throw unusableAnswer(at);
  return { ...Object.fromEntries(checksums), PartNumber: number, ETag: answer.ETag };
}

function etagOf(at: S3Address, etag: string | undefined): string {
  if (etag === undefined) throw unusableAnswer(at);
  return unquoted(etag);
}

function unquoted(etag: string): string {
  return etag.replaceAll('"', '');
}

/** Returns the ETag of an object made of parts; null when their ETags are no MD5 digests, as with some encryption. */
function etagOfParts(parts: readonly S3Part[]): string | null {
  const digests = parts.map(({ ETag }) => unquoted(ETag));
  if (!digests.every((digest) => /^[0-9a-f]{32}$/.test(digest))) return null;
  const whole = createHash('md5')
    .update(Buffer.from(digests.join(''), 'hex'))
    .digest('hex');
  return `${whole}-${parts.length}`;
}

function statusOf(cause: unknown): number | undefined {
  return (cause as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode;
}

function unusableAnswer(at: S3Address): AppError {
  return new AppError('S3_REQUEST_REFUSED', {
    address: s3UrlOf(at),
    status: 200,
    code: 'an answer without ETag or id',
  });
}
