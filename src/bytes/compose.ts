import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { SplicePlan } from './splice-plan.ts';

/**
 * Walks a plan over a source in memory, whose byte `sourceOffset` is the first of `held`, fills `output` and returns the
 * flat digest. For outputs of a few hundred kilobytes at most: what `executePlan` needs to read ahead and write behind
 * costs more than they do. A hole is left as it is.
 */
export function compose(plan: SplicePlan, held: Buffer, sourceOffset: number, output: Buffer): Uint8Array {
  const hash = createHash(plan.hashing.algorithm);
  let position = 0;
  for (const splice of plan.splices) {
    if (splice.kind === 'mark') {
      hash.update(splice.bytes);
    } else if (splice.kind === 'hole') {
      position += splice.length;
    } else {
      assert(splice.into !== 'leaves', 'a plan with leaves is walked by executePlan');
      const bytes =
        splice.kind === 'insert' ? splice.bytes : sliceOf(held, splice.offset - sourceOffset, splice.length);
      output.set(bytes, position);
      if (splice.into === 'flat') hash.update(bytes);
      position += bytes.length;
    }
  }
  assert(position === output.length, 'the output has the size that the plan gives it');
  return hash.digest();
}

function sliceOf(held: Buffer, offset: number, length: number): Buffer {
  assert(offset >= 0 && offset + length <= held.length, 'a plan copies what is held');
  return held.subarray(offset, offset + length);
}
