import { AppError } from '#errors/app-error.ts';
import { type Naming, stemOf } from '#outputs/output-path.ts';

/** The outputs of an input that gets a sidecar: their names, destinations or sinks. */
export interface SidecarOutputs<Output = string> {
  /** Null where the sidecar is the only output. */
  readonly copy: Output | null;
  readonly sidecar: Output;
}

/**
 * Names the copy of a file, which keeps its extension, and the sidecar, by which readers find it: `<stem of the copy>.c2pa`,
 * or `<stem of the source>.c2pa` where it is the only output. Throws `SIDECAR_NAME_TAKEN` for a file that has this name.
 */
export function sidecarLeaves(name: string, naming: Naming, copiesSource = true): SidecarOutputs {
  const stem = stemOf(name);
  const extension = name.slice(stem.length);
  if (extension.toLowerCase() === '.c2pa') throw new AppError('SIDECAR_NAME_TAKEN', { name });
  if (!copiesSource) return { copy: null, sidecar: `${stem}.c2pa` };
  const copyStem = naming === 'derived' ? `${stem}_c2pa` : stem;
  return { copy: `${copyStem}${extension}`, sidecar: `${copyStem}.c2pa` };
}

/** Names the report of an input: `interview_verification.json`. */
export function reportLeaf(name: string): string {
  return `${stemOf(name)}_verification.json`;
}
