import { AppError } from '#errors/app-error.ts';
import type { Box } from './boxes.ts';
import { chunksIn, type DefaultSizes, type MediaRange, runsIn } from './media-boxes.ts';
import { isOfTables, type StrayTable, strayTableIn } from './table-places.ts';

/** Why players find samples elsewhere than in the media of an init segment or a fragment, and the box that leads them there. */
export interface StraySamples extends StrayTable {
  readonly problem: string;
}

const MISPLACED = 'it leads players to samples where no such box belongs, or seems to; write the file anew';

/** Returns the first stray table in the boxes of a part beside its media; null for none. */
export function strayTableOfPart(boxes: readonly Box[]): StraySamples | null {
  for (const box of boxes) {
    const isMovie = box.type === 'moov' || box.type === 'moof';
    const stray = !isMovie && isOfTables(box.type) ? { type: box.type, offset: box.header.offset } : strayTableIn(box);
    if (stray !== null) return { ...stray, problem: MISPLACED };
  }
  return null;
}

/** Returns the box by which an init segment leads players to samples: it has none. Null where none does. */
export function straySamplesOfInit(boxes: readonly Box[]): StraySamples | null {
  const traks = boxes.filter(({ type }) => type === 'moov').flatMap((moov) => [...moov.descendants('trak')]);
  return (
    strayTableOfPart(boxes) ??
    traks.map((trak) => straySamplesIn(trak, chunksIn(trak, false), [])).find((stray) => stray !== null) ??
    null
  );
}

/**
 * Returns how a `moof` box leads players to samples elsewhere than in `media`, or to information about them that is not in itself
 * either; null where it does not.
 */
export function straySamplesOfFragment(
  moof: Box,
  media: readonly MediaRange[],
  defaults: DefaultSizes,
): StraySamples | null {
  return straySamplesIn(moof, runsIn(moof, defaults), media);
}

function straySamplesIn(
  { header, endOffset }: Box,
  samples: Iterable<MediaRange>,
  media: readonly MediaRange[],
): StraySamples | null {
  const { type, offset } = header;
  try {
    for (const { start, end, isAuxiliary = false } of samples) {
      const allowed = isAuxiliary ? [...media, { start: offset, end: endOffset }] : media;
      if (end <= start || allowed.some((range) => range.start <= start && end <= range.end)) continue;
      return {
        type,
        offset,
        problem: `it leads players to ${isAuxiliary ? 'the encryption of samples' : 'samples'} at byte ${start}, which are not all in media of this part`,
      };
    }
    return null;
  } catch (error) {
    if (error instanceof AppError) return { type, offset, problem: error.message };
    throw error;
  }
}
