import { readRange } from '#bytes/byte-source.ts';
import type { FolderSink } from '#outputs/folder-sink.ts';
import type { FragmentReader } from '#provenance/fragment-reader.ts';
import { type OutputRendition, rehashPublication } from '#publications/checking/rehash-publication.ts';
import type { InputContext } from './operation.ts';

/** Of a rendition's fragments, the official reader checks the first, the last, and every so many. */
const SAMPLE_INTERVAL = 32;

/** The official reader holds a fragment in memory; what is larger is left to the second pass of our own. */
const READ_BACK_MAX_BYTES = 256 * 1024 * 1024;

/**
 * Checks a sealed publication before it is delivered: every file is hashed again from the staged bytes by code that
 * shares nothing with the writing, and the official reader validates a sample of each rendition's fragments, or all.
 */
export async function checkPublication(
  sink: FolderSink,
  renditions: readonly OutputRendition[],
  reader: FragmentReader,
  checks: 'sample' | 'all',
  { signal }: InputContext,
): Promise<void> {
  await rehashPublication(sink, renditions, signal);
  for (const { init, fragments } of renditions) {
    const initBytes = await readWhole(sink, init, signal);
    for (const [index, path] of fragments.entries()) {
      if (checks === 'sample' && !isSampled(index, fragments.length)) continue;
      await checkFragment(sink, initBytes, path, reader, signal);
    }
  }
}

function isSampled(index: number, count: number): boolean {
  return index % SAMPLE_INTERVAL === 0 || index === count - 1;
}

async function checkFragment(
  sink: FolderSink,
  init: Uint8Array | null,
  path: string,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<void> {
  const fragment = await readWhole(sink, path, signal);
  if (init === null || fragment === null) return;
  await reader.readBack(init, fragment, path, signal);
}

/** A staged file as bytes; null where it is too large to be held. */
async function readWhole(sink: FolderSink, path: string, signal: AbortSignal): Promise<Uint8Array | null> {
  const source = await sink.open(path, signal);
  try {
    return source.sizeBytes > READ_BACK_MAX_BYTES ? null : await readRange(source, 0, source.sizeBytes, signal);
  } finally {
    await source.close();
  }
}
