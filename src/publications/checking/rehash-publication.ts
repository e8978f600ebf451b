import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { describeFinding } from './describe-finding.ts';
import { verifyPublication } from './verify-publication.ts';

/** A rendition of the output, by path. */
export interface OutputRendition {
  readonly init: string;
  /** In playback order. */
  readonly fragments: readonly string[];
}

/**
 * Hashes every init segment and fragment of a finished output again, from its bytes alone, and holds them against the
 * manifest inside. Rejects with `OUTPUT_PART_INVALID` where one does not agree. `rehashed` is called after each.
 */
export async function rehashPublication(
  output: Pick<SourceFolder, 'open'>,
  renditions: readonly OutputRendition[],
  signal: AbortSignal,
  rehashed: () => void = () => undefined,
): Promise<void> {
  const parts = renditions.map(({ init, fragments }) => ({ init: whole(init), fragments: fragments.map(whole) }));
  const { manifests, findings } = await verifyPublication(output, parts, signal, { verified: rehashed });
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
