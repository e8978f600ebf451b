import type { ByteSource } from '#bytes/byte-source.ts';
import { readRange } from '#bytes/byte-source.ts';
import type { ByteRange } from '../publication.ts';
import type { PublicationWriter } from './sign-rendition.ts';

/** Where a fragment is written; its Merkle box comes last. */
export interface FragmentOutput {
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
  /** Puts the Merkle box in its place and hands the file over. */
  finish(merkleBox: Uint8Array, position: number): Promise<void>;
  /** Gives up what was not finished. Safe to call again. */
  close(): Promise<void>;
}

/** A fragment that is written as it is read. */
export async function streamedOutput(
  path: string,
  writer: PublicationWriter,
  signal: AbortSignal,
): Promise<FragmentOutput> {
  const file = await writer.create(path, signal);
  return {
    write: (bytes, position) => file.write(bytes, position, signal),
    async finish(merkleBox, position) {
      await file.write(merkleBox, position, signal);
      await file.close();
    },
    close: () => file.close(),
  };
}

/** A small fragment, held in memory until it is finished: its file is opened and written once. */
export function heldOutput(
  path: string,
  sizeBytes: number,
  writer: PublicationWriter,
  signal: AbortSignal,
): FragmentOutput {
  const held = Buffer.allocUnsafe(sizeBytes);
  return {
    write(bytes, position) {
      held.set(bytes, position);
      return Promise.resolve();
    },
    async finish(merkleBox, position) {
      held.set(merkleBox, position);
      const file = await writer.create(path, signal);
      try {
        await file.write(held, 0, signal);
      } finally {
        await file.close();
      }
    },
    close: () => Promise.resolve(),
  };
}

/** A source whose bytes `[offset, offset + length)` have been read into memory; nothing else of it can be read. */
export async function heldSource(
  source: ByteSource,
  { offset, length }: ByteRange,
  signal: AbortSignal,
): Promise<ByteSource> {
  const held = await readRange(source, offset, length, signal);
  return {
    name: source.name,
    sizeBytes: source.sizeBytes,
    read(target, from) {
      target.set(held.subarray(from - offset, from - offset + target.length));
      return Promise.resolve();
    },
    checkUnchanged: async () => await source.checkUnchanged?.(signal),
    close: () => source.close(),
  };
}
