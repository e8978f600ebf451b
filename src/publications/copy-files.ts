import { executePlan } from '#bytes/execute-plan.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { SplicePlan } from '#bytes/splice-plan.ts';
import type { PublicationWriter } from './signing/signing-context.ts';

/** Copies a file of the folder to the same path of the output, byte for byte. */
export async function copyFile(
  folder: SourceFolder,
  path: string,
  writer: PublicationWriter,
  signal: AbortSignal,
  wrote: (bytes: number) => void,
): Promise<void> {
  const source = await folder.open(path, signal);
  try {
    const output = await writer.create(path, signal);
    try {
      await executePlan(wholeFile(source.sizeBytes), source, output, { signal });
    } finally {
      await output.close();
    }
    wrote(source.sizeBytes);
  } finally {
    await source.close();
  }
}

/** Writes a text file of the output. */
export async function writeText(
  path: string,
  text: string,
  writer: PublicationWriter,
  signal: AbortSignal,
): Promise<void> {
  const output = await writer.create(path, signal);
  try {
    await output.write(Buffer.from(text), 0, signal);
  } finally {
    await output.close();
  }
}

function wholeFile(length: number): SplicePlan {
  const splices = length === 0 ? [] : [{ kind: 'copy', offset: 0, length, into: 'none' } as const];
  return { splices, hashing: { algorithm: 'sha256' } };
}
