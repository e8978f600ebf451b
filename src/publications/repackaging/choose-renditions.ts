import type { MediaPart } from '../publication.ts';
import { matchingPaths } from '../reading/path-patterns.ts';
import type { ExistingRendition } from './existing-publication.ts';

/** Which files of a folder are its publication, where the request says so; null leaves it open. */
export interface ChoicePatterns {
  readonly playlist: string | null;
  readonly init: string | null;
  readonly frag: string | null;
}

export const NO_PATTERNS: ChoicePatterns = { playlist: null, init: null, frag: null };

/** Renditions by whether the patterns choose them. */
export interface ChosenRenditions {
  readonly chosen: readonly ExistingRendition[];
  readonly unchosen: readonly ExistingRendition[];
}

/**
 * Chooses the renditions of which the patterns find the init segment and a segment. Subtitles as text have neither, and
 * stay. Throws PATTERN_NO_MATCH for a pattern that finds nothing in the folder.
 */
export function chooseRenditions(
  renditions: readonly ExistingRendition[],
  paths: readonly string[],
  { init, frag }: ChoicePatterns,
): ChosenRenditions {
  const inits = init === null ? null : matchingPaths(paths, init, 'params.init_pattern');
  const frags = frag === null ? null : matchingPaths(paths, frag, 'params.frag_pattern');
  const isChosen = ({ parts, hasInit, isText }: ExistingRendition): boolean => {
    if (isText) return true;
    const fits = (found: ReadonlySet<string> | null, some: readonly MediaPart[]): boolean =>
      found === null || some.some(({ path }) => found.has(path));
    const start = hasInit ? 1 : 0;
    return (!hasInit || fits(inits, parts.slice(0, start))) && fits(frags, parts.slice(start));
  };
  return { chosen: renditions.filter(isChosen), unchosen: renditions.filter((rendition) => !isChosen(rendition)) };
}
