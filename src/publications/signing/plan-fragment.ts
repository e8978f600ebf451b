import assert from 'node:assert/strict';
import type { Splice, SplicePlan } from '#bytes/splice-plan.ts';
import { FRAGMENT_ALGORITHM } from './fragment-algorithm.ts';
import type { FragmentLayout } from './fragment-layout.ts';
import { type ChangedBox, hashedBox } from './hashed-box.ts';
import { moveBaseDataOffsets } from './move-base-data-offsets.ts';
import { moveSegmentIndex } from './move-segment-index.ts';
import { type OutputPositions, outputPositions } from './output-positions.ts';
import type { TopBox } from './top-boxes.ts';

/** A fragment's output: what to write, and where the Merkle box goes once its proof is known. */
export interface FragmentPlan {
  readonly plan: SplicePlan;
  /** Position of the Merkle box in the output, in bytes: the plan's hole. */
  readonly merkleBoxOffset: number;
}

/**
 * Plans the signed form of a fragment: earlier Merkle boxes out, room for a new one immediately before the moof, and
 * every stored offset and size moved accordingly. The digest of the plan is the fragment's leaf, whatever the Merkle box
 * will say, because the box is excluded from the hash and only its size moves what follows.
 */
export function planFragment(layout: FragmentLayout, merkleBoxSizeBytes: number): FragmentPlan {
  const positions = outputPositions(layout, merkleBoxSizeBytes);
  const splices: Splice[] = [];
  let merkleBoxOffset = -1;
  for (const box of layout.boxes) {
    const position = positions.ofBox(box);
    if (box === layout.moof) {
      merkleBoxOffset = position - merkleBoxSizeBytes;
      splices.push({ kind: 'hole', length: merkleBoxSizeBytes });
    }
    splices.push(...hashedBox(box, position, rewritten(layout, box, positions)));
  }
  assert(merkleBoxOffset >= 0, 'the layout has a moof');
  return { plan: { splices, hashing: { algorithm: FRAGMENT_ALGORITHM } }, merkleBoxOffset };
}

/** A box that has to change, or null where it is copied. */
function rewritten(layout: FragmentLayout, box: TopBox, positions: OutputPositions): ChangedBox | null {
  if (box === layout.moof) {
    const bytes = moveBaseDataOffsets(layout, positions.ofBox(box));
    return bytes === null || layout.moofWithPositions === null
      ? null
      : { bytes, original: layout.moofWithPositions.bytes };
  }
  const index = layout.indexes.get(box.offset);
  if (index === undefined) return null;
  return { bytes: moveSegmentIndex(index, box, positions, layout.path), original: index };
}
