import type { SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import type { FragmentReader } from '#provenance/official-reader.ts';
import { type Rendition, readPart } from '../media-part.ts';
import { sampleOf } from './official-readings.ts';
import { verifyParts } from './part-findings.ts';
import { describeFinding } from './publication-verdict.ts';

/** The official reader holds a fragment in memory; what is larger is left to the second pass of our own. */
const MAX_READ_BACK_BYTES = 256 * 1024 * 1024;

/** A staged publication, and how thoroughly it is checked. */
interface OutputCheck {
  /** The sealed output. */
  readonly output: Pick<SourceFolder, 'open'>;
  readonly renditions: readonly Rendition[];
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
    const initBytes = await readPart(output, init, signal, MAX_READ_BACK_BYTES);
    const checked = which === 'all' ? fragments : sampleOf(fragments);
    await mapConcurrent(checked, reader.maxConcurrency, async (part) => {
      const bytes = await readPart(output, part, signal, MAX_READ_BACK_BYTES);
      if (initBytes !== null && bytes !== null) await reader.readBack(initBytes, bytes, part.path, signal);
      onProgress();
    });
  }
}

/**
 * Hashes every init segment and fragment of a finished output again, from its bytes alone, and holds them against the
 * manifest inside. Rejects with `OUTPUT_PART_INVALID` where one does not agree. `hashed` is called after each.
 */
export async function hashOutput(
  output: Pick<SourceFolder, 'open'>,
  renditions: readonly Rendition[],
  signal: AbortSignal,
  hashed: () => void = () => undefined,
): Promise<void> {
  const { manifests, renditions: read, findings } = await verifyParts(output, renditions, signal, { verified: hashed });
  const [first] = renditions;
  const [finding] = findings;
  if (finding !== undefined) {
    throw invalid(finding.parts[0]?.path ?? finding.init?.path ?? first?.init.path ?? '', describeFinding(finding));
  }
  if (manifests.length === 0) throw invalid(first?.init.path ?? '', 'it has no manifest');
  const other = read.find((each) => each.read.manifest === 1);
  if (other !== undefined)
    throw invalid(other.listed.init.path, 'its manifest differs from that of the first init segment');
}

function invalid(file: string, problem: string): AppError {
  return new AppError('OUTPUT_PART_INVALID', { file, problem });
}
