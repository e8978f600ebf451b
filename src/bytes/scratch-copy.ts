import { type FileHandle, open } from 'node:fs/promises';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import type { ByteSource, StoredObject } from './byte-source.ts';
import { executePlan } from './execute-plan.ts';
import { type FileSource, openOwnFile } from './file-source.ts';
import type { ScratchFile, ScratchSpace } from './scratch-space.ts';

/** A source that lies on this host, where the SDK can read it too. */
export interface LocalSource extends ByteSource {
  readonly localPath: string;
}

/**
 * The source itself where it lies on this host, else a copy of it, which is there until the scratch space is removed.
 * Rejects with SCRATCH_FULL where there is no room for it.
 */
export async function localCopyOf(
  source: ByteSource,
  scratch: ScratchSpace,
  signal: AbortSignal,
): Promise<LocalSource> {
  return isLocal(source) ? source : await scratchCopyOf(source, scratch, signal);
}

/**
 * As `localCopyOf`, for what is read more than once and has to be the same every time, such as by the SDK, which validates
 * it, and by us, who copy it: what lies on this host is copied as well where its changes would not be seen.
 */
export async function pinnedCopyOf(
  source: ByteSource,
  scratch: ScratchSpace,
  signal: AbortSignal,
): Promise<LocalSource> {
  const isPinned = source.pin === undefined || (await source.pin(signal));
  return isPinned && isLocal(source) ? source : await scratchCopyOf(source, scratch, signal);
}

async function scratchCopyOf(source: ByteSource, scratch: ScratchSpace, signal: AbortSignal): Promise<LocalSource> {
  const { name, sizeBytes, claimedMediaType } = source;
  const file = await scratch.reserve('copy', sizeBytes);
  try {
    await copyTo(file, source, signal);
    const copy = await openScratchFile(file, {
      name,
      ...(claimedMediaType !== undefined && { claimedMediaType }),
      ...(source.storedAt !== undefined && { storedAt: source.storedAt }),
    });
    scratch.adopt(copy);
    return copy;
  } catch (error) {
    file.release();
    throw error;
  }
}

function isLocal(source: ByteSource): source is LocalSource {
  return source.localPath !== undefined;
}

async function copyTo(file: ScratchFile, source: ByteSource, signal: AbortSignal): Promise<void> {
  const handle = await createScratchFile(file.path);
  try {
    const plan = {
      splices: [{ kind: 'copy', offset: 0, length: source.sizeBytes, into: 'none' }],
      hashing: { algorithm: 'sha256' },
    } as const;
    await executePlan(
      plan,
      source,
      { write: (bytes, position) => writeScratch(handle, file.path, bytes, position) },
      { signal, onProgress: () => file.grew() },
    );
  } finally {
    await handle.close();
  }
}

/** Makes the file of a reservation. */
export async function createScratchFile(path: string): Promise<FileHandle> {
  return await translated(path, () => open(path, 'wx', 0o600));
}

/** Writes the whole of `bytes` at a position of a scratch file. */
export async function writeScratch(
  handle: FileHandle,
  path: string,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    const step = () => handle.write(bytes, written, bytes.length - written, position + written);
    written += (await translated(path, step)).bytesWritten;
  }
}

/** Opens a scratch file that is written whole; closing the source removes the file. */
export async function openScratchFile(
  file: ScratchFile,
  named: Pick<ByteSource, 'name' | 'claimedMediaType' | 'storedAt'>,
): Promise<LocalSource> {
  return new ScratchSource(file, await openOwnFile(file.path, named.name), named);
}

async function translated<T>(path: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    throw new AppError('SCRATCH_UNUSABLE', { path, problem: problemOf(cause) }, { cause });
  }
}

/** A file of a scratch space, which goes when the source is closed. */
class ScratchSource implements LocalSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly localPath: string;
  readonly claimedMediaType?: string;
  readonly storedAt?: StoredObject;
  readonly #file: ScratchFile;
  readonly #source: FileSource;

  constructor(
    file: ScratchFile,
    source: FileSource,
    { claimedMediaType, storedAt }: Pick<ByteSource, 'claimedMediaType' | 'storedAt'>,
  ) {
    this.name = source.name;
    this.sizeBytes = source.sizeBytes;
    this.localPath = source.localPath;
    if (claimedMediaType !== undefined) this.claimedMediaType = claimedMediaType;
    if (storedAt !== undefined) this.storedAt = storedAt;
    this.#file = file;
    this.#source = source;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    await this.#source.read(target, offset, signal);
  }

  async close(): Promise<void> {
    await this.#source.close();
    this.#file.release();
  }
}
