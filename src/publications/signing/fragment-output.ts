import type { PublicationWriter } from './signing-context.ts';

/** Where a fragment is written; its Merkle box comes last. */
export interface FragmentOutput {
  /** Puts the Merkle box in its place and hands the file over. */
  finish(merkleBox: Uint8Array): Promise<void>;
  /** Gives up what was not finished. Safe to call again. */
  close(): Promise<void>;
}

/** A fragment whose file is being written; `write` takes everything but the Merkle box. */
export interface StreamedOutput extends FragmentOutput {
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
}

/** A fragment that is written as it is read. */
export async function streamedOutput(
  path: string,
  merkleBoxOffset: number,
  writer: PublicationWriter,
  signal: AbortSignal,
): Promise<StreamedOutput> {
  const file = await writer.create(path, signal);
  return {
    write: (bytes, position) => file.write(bytes, position, signal),
    async finish(merkleBox) {
      await file.write(merkleBox, merkleBoxOffset, signal);
      await file.close();
    },
    close: () => file.close(),
  };
}

/** A small fragment, held in memory until it is finished: its file is opened and written once. */
export function heldOutput(
  path: string,
  bytes: Buffer,
  merkleBoxOffset: number,
  writer: PublicationWriter,
  signal: AbortSignal,
): FragmentOutput {
  return {
    async finish(merkleBox) {
      bytes.set(merkleBox, merkleBoxOffset);
      const file = await writer.create(path, signal);
      try {
        await file.write(bytes, 0, signal);
      } finally {
        await file.close();
      }
    },
    close: () => Promise.resolve(),
  };
}
