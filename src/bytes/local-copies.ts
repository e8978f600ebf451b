import type { ByteSource, LocalSource } from './byte-source.ts';
import { executePlan } from './execute-plan.ts';
import {
  createScratchFile,
  openScratchFile,
  type ScratchFile,
  type ScratchSpace,
  writeScratch,
} from './scratch-space.ts';
import type { SourceFolder } from './source-folder.ts';

/**
 * Returns the source itself where it is on this host, else a copy, which exists until the scratch space is removed.
 * Throws `SCRATCH_FULL` or `SCRATCH_UNUSABLE`, and the errors of the source.
 */
export async function localCopyOf(
  source: ByteSource,
  scratch: ScratchSpace,
  signal: AbortSignal,
): Promise<LocalSource> {
  return isLocal(source) ? source : await scratchCopyOf(source, scratch, signal);
}

/**
 * Does the same as `localCopyOf` for a source that is read several times and must not change in between, such as by the
 * SDK for validation and then for copying. Copies a source on this host, too, if its changes could not be detected.
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
      { signal, onProgress: () => file.heartbeat() },
    );
  } finally {
    await handle.close();
  }
}

/**
 * Local copies of a folder's files, for programs and the SDK, which read files of this host only. A remote file is
 * copied to the scratch space once.
 */
export class LocalCopies {
  readonly #folder: SourceFolder;
  readonly #scratch: ScratchSpace;
  readonly #sources = new Map<string, Promise<LocalSource>>();

  constructor(folder: SourceFolder, scratch: ScratchSpace) {
    this.#folder = folder;
    this.#scratch = scratch;
  }

  /**
   * Returns a file of the folder. It stays open, and readable by its path, until `release`. Throws
   * as `localCopyOf` does.
   */
  of(path: string, signal: AbortSignal): Promise<LocalSource> {
    const known = this.#sources.get(path);
    if (known !== undefined) return known;
    const source = this.#copy(path, signal);
    this.#sources.set(path, source);
    return source;
  }

  async #copy(path: string, signal: AbortSignal): Promise<LocalSource> {
    const opened = await this.#folder.open(path, signal);
    try {
      const source = await localCopyOf(opened, this.#scratch, signal);
      if (source !== opened) await opened.close();
      return source;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** Closes all files and removes the copies. Safe to call again. */
  async release(): Promise<void> {
    const sources = await Promise.allSettled(this.#sources.values());
    this.#sources.clear();
    for (const source of sources) if (source.status === 'fulfilled') await source.value.close();
  }
}
