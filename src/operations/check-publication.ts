import { readRange } from '#bytes/byte-source.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { FragmentReader } from '#provenance/reading/fragment-reader.ts';
import { type OutputRendition, rehashPublication } from '#publications/checking/rehash-publication.ts';

/** Of a rendition's fragments, the official reader checks the first, the last, and every so many. */
const SAMPLE_INTERVAL = 32;

/** The official reader holds a fragment in memory; what is larger is left to the second pass of our own. */
const READ_BACK_MAX_BYTES = 256 * 1024 * 1024;

/** What is checked, and how thoroughly. */
export interface PublicationCheck {
  /** The sealed output. */
  readonly output: Pick<SourceFolder, 'open'>;
  readonly renditions: readonly OutputRendition[];
  readonly reader: FragmentReader;
  /** Which fragments the official reader is given. */
  readonly fragments: 'sample' | 'all';
  /** Called whenever a file was checked: a large publication takes long, and writes nothing meanwhile. */
  readonly stillAlive: () => void;
}

/**
 * Checks a sealed publication before it is delivered: every file is hashed again from the staged bytes by code that
 * shares nothing with the writing, while the official reader validates fragments of each rendition on its own threads.
 * Where one fails, the other is stopped, and has ended before the failure is thrown.
 */
export async function checkPublication(check: PublicationCheck, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const passes = [
    () => rehashPublication(check.output, check.renditions, either, check.stillAlive),
    () => readBackFragments(check, either),
  ];
  await sideBySide(passes, passes.length, async (pass) => {
    try {
      await pass();
    } catch (error) {
      stop.abort(error);
      throw error;
    }
  });
}

async function readBackFragments(
  { output, renditions, reader, fragments: which, stillAlive }: PublicationCheck,
  signal: AbortSignal,
): Promise<void> {
  for (const { init, fragments } of renditions) {
    const initBytes = await readWhole(output, init, signal);
    const checked =
      which === 'all' ? fragments : fragments.filter((_path, index) => isSampled(index, fragments.length));
    await sideBySide(checked, reader.atOnce, async (path) => {
      await checkFragment(output, initBytes, path, reader, signal);
      stillAlive();
    });
  }
}

function isSampled(index: number, count: number): boolean {
  return index % SAMPLE_INTERVAL === 0 || index === count - 1;
}

async function checkFragment(
  output: Pick<SourceFolder, 'open'>,
  init: Uint8Array | null,
  path: string,
  reader: FragmentReader,
  signal: AbortSignal,
): Promise<void> {
  const fragment = await readWhole(output, path, signal);
  if (init === null || fragment === null) return;
  await reader.readBack(init, fragment, path, signal);
}

/** A staged file as bytes; null where it is too large to be held. */
async function readWhole(
  output: Pick<SourceFolder, 'open'>,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const source = await output.open(path, signal);
  try {
    return source.sizeBytes > READ_BACK_MAX_BYTES ? null : await readRange(source, 0, source.sizeBytes, signal);
  } finally {
    await source.close();
  }
}
