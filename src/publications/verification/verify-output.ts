import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { FragmentReader } from '#provenance/fragment-reader.ts';
import { describeFinding } from './publication-verdict.ts';
import { verifyParts } from './verify-parts.ts';

/** The official reader holds a fragment in memory; what is larger is left to the second pass of our own. */
const MAX_READ_BACK_BYTES = 256 * 1024 * 1024;

/** A staged publication, and how thoroughly it is checked. */
interface OutputCheck {
  /** The sealed output. */
  readonly output: Pick<SourceFolder, 'open'>;
  readonly renditions: readonly OutputRendition[];
  readonly reader: FragmentReader;
  /** Fragments that the official reader checks. */
  readonly fragments: 'sample' | 'all';
  /** Called whenever a file was checked: a large publication takes long, and writes nothing meanwhile. */
  readonly onProgress: () => void;
}

/**
 * Checks a sealed publication before it is committed: every file is hashed again from the staged bytes by code that
 * shares nothing with the writing, while the official reader validates fragments of each rendition on its own threads.
 * When one fails, the other is aborted and awaited before the failure is thrown.
 */
export async function verifyOutput(check: OutputCheck, signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const passes = [
    () => hashOutput(check.output, check.renditions, either, check.onProgress),
    () => readBackFragments(check, either),
  ];
  await mapConcurrent(passes, passes.length, async (pass) => {
    try {
      await pass();
    } catch (error) {
      stop.abort(error);
      throw error;
    }
  });
}

async function readBackFragments(
  { output, renditions, reader, fragments: which, onProgress }: OutputCheck,
  signal: AbortSignal,
): Promise<void> {
  for (const { init, fragments } of renditions) {
    const initBytes = await readWhole(output, init, signal);
    const checked = which === 'all' ? fragments : sampleOf(fragments);
    await mapConcurrent(checked, reader.maxConcurrency, async (path) => {
      await checkFragment(output, initBytes, path, reader, signal);
      onProgress();
    });
  }
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

/** Reads a staged file into memory; null where it is larger than `MAX_READ_BACK_BYTES`. */
async function readWhole(
  output: Pick<SourceFolder, 'open'>,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const source = await output.open(path, signal);
  try {
    return source.sizeBytes > MAX_READ_BACK_BYTES ? null : await readRange(source, 0, source.sizeBytes, signal);
  } finally {
    await source.close();
  }
}

/** A rendition of the output, by path. */
export interface OutputRendition {
  readonly init: string;
  /** In playback order. */
  readonly fragments: readonly string[];
}

/**
 * Hashes every init segment and fragment of a finished output again, from its bytes alone, and holds them against the
 * manifest inside. Rejects with `OUTPUT_PART_INVALID` where one does not agree. `hashed` is called after each.
 */
export async function hashOutput(
  output: Pick<SourceFolder, 'open'>,
  renditions: readonly OutputRendition[],
  signal: AbortSignal,
  hashed: () => void = () => undefined,
): Promise<void> {
  const parts = renditions.map(({ init, fragments }) => ({ init: whole(init), fragments: fragments.map(whole) }));
  const { manifests, findings } = await verifyParts(output, parts, signal, { verified: hashed });
  const [first] = renditions;
  const [finding] = findings;
  if (finding !== undefined) {
    throw invalid(finding.parts[0]?.path ?? finding.init?.path ?? first?.init ?? '', describeFinding(finding));
  }
  const [manifest, other] = manifests;
  if (manifest === undefined) throw invalid(first?.init ?? '', 'it has no manifest');
  if (other !== undefined) {
    const [index] = other.renditions;
    throw invalid(renditions[index ?? 0]?.init ?? '', 'its manifest differs from that of the first init segment');
  }
}

function whole(path: string) {
  return { path, range: null };
}

function invalid(file: string, problem: string): AppError {
  return new AppError('OUTPUT_PART_INVALID', { file, problem });
}

/** Fragments of a rendition that the official reader is given, where it is not given all. */
export const MAX_SAMPLED_FRAGMENTS = 16;

/** Returns up to `count` items, at least two, at even distances: the first and the last are among them. */
export function sampleOf<Item>(items: readonly Item[], count = MAX_SAMPLED_FRAGMENTS): Item[] {
  if (items.length <= count) return [...items];
  const step = (items.length - 1) / (count - 1);
  return Array.from({ length: count }, (_, index) => itemAt(items, Math.round(index * step)));
}
