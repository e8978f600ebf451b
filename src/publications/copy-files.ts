import { createHash } from 'node:crypto';
import { executePlan } from '#bytes/execute-plan.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import type { SplicePlan } from '#bytes/splice-plan.ts';
import type { HashedFile } from './presentation/presentation.ts';
import type { PublicationWriter } from './signing/signing-context.ts';

/** Copies a file of the folder to the same path of the output, byte for byte. Returns what was written. */
export async function copyFile(
  folder: SourceFolder,
  path: string,
  writer: PublicationWriter,
  signal: AbortSignal,
  wrote: (bytes: number) => void,
): Promise<HashedFile> {
  return await withSource(folder, { path }, signal, async (source) => {
    const { sizeBytes } = source;
    const output = await writer.create(path, signal);
    try {
      const { flat: digest } = await executePlan(wholeFile(sizeBytes), source, output, { signal });
      wrote(sizeBytes);
      return { path, sizeBytes, digest };
    } finally {
      await output.close();
    }
  });
}

/** Writes a text file of the output. Returns what was written. */
export async function writeText(
  path: string,
  text: string,
  writer: PublicationWriter,
  signal: AbortSignal,
): Promise<HashedFile> {
  const bytes = Buffer.from(text);
  const output = await writer.create(path, signal);
  try {
    await output.write(bytes, 0, signal);
  } finally {
    await output.close();
  }
  return hashBytes(path, bytes);
}

/** Hashes a file in memory. */
export function hashBytes(path: string, bytes: Uint8Array): HashedFile {
  return { path, sizeBytes: bytes.length, digest: createHash('sha256').update(bytes).digest() };
}

/** Returns the plan that copies a file and hashes all of it. */
export function wholeFile(length: number): SplicePlan {
  const splices = length === 0 ? [] : [{ kind: 'copy', offset: 0, length, into: 'flat' } as const];
  return { splices, hashing: { algorithm: 'sha256' } };
}
