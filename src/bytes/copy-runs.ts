import { outputLengthOf, type SplicePlan } from './splice-plan.ts';

/** A range of the output that is an unchanged range of the source. All in bytes. */
export interface CopyRun {
  /** Where it lies in the output. */
  readonly position: number;
  /** Where it lies in the source. */
  readonly offset: number;
  readonly length: number;
}

/** The longest ranges that a plan takes unchanged from the source, in output order, however they are hashed. */
export function copyRunsOf(plan: SplicePlan): CopyRun[] {
  const runs: { position: number; offset: number; length: number }[] = [];
  let position = 0;
  for (const splice of plan.splices) {
    const length = outputLengthOf(splice);
    if (splice.kind === 'copy' && length > 0) {
      const last = runs.at(-1);
      const continues =
        last !== undefined && last.position + last.length === position && last.offset + last.length === splice.offset;
      if (continues) last.length += length;
      else runs.push({ position, offset: splice.offset, length });
    }
    position += length;
  }
  return runs;
}
