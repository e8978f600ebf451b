import { createContext, runInContext } from 'node:vm';
import picomatch from 'picomatch';
import { AppError } from '#errors/app-error.ts';
import type { PublicationPatterns } from '../publication.ts';

/** A glob that is longer than this is a mistake, and its regular expression a burden. */
const PATTERN_MAX_LENGTH = 1_000;
/** A glob that is matched against 100,000 paths is done in a hundredth of this. */
const MATCHING_BOUND_MS = 10_000;
/** How many names an error shows of what is in the folder. */
export const NAMES_SHOWN = 10;

/** The paths of a folder that each of the three patterns claims. */
export interface ClaimedPaths {
  readonly playlists: ReadonlySet<string>;
  readonly inits: ReadonlySet<string>;
  readonly fragments: ReadonlySet<string>;
}

/**
 * Matches the request's three patterns against the folder's paths. A pattern that matches nothing is an error; segments
 * of transport streams get an error of their own, because there an init pattern cannot match.
 */
export function claimPaths(paths: readonly string[], patterns: PublicationPatterns): ClaimedPaths {
  const fragments = matchingPaths(paths, patterns.frag, 'params.frag_pattern');
  const playlists = matchingPaths(paths, patterns.playlist, 'params.playlist_pattern');
  const inits = select(paths, patterns.init, 'params.init_pattern');
  if (inits.size === 0) {
    const stream = [...fragments].find(needsPackaging);
    if (stream !== undefined) throw new AppError('SEGMENTS_NEED_PACKAGING', { segment: stream });
    throw noMatch(paths, patterns.init, 'params.init_pattern');
  }
  return { playlists, inits, fragments };
}

/** Whether a segment's name says that it is a transport stream or packed audio, which cannot carry a manifest. */
export function needsPackaging(path: string): boolean {
  return /\.(ts|m2ts|mts|aac|ac3|ec3|mp3)$/i.test(path);
}

/** Whether a segment's name says that it is a picture, as for the seek bar, which is carried through unsigned. */
export function isPicture(path: string): boolean {
  return /\.(?:jpe?g|png|webp|gif|avif)(?:\?|$)/i.test(path);
}

/** Whether a segment's name says that it is text, which is carried through unsigned. */
export function isPlainText(path: string): boolean {
  return /\.(vtt|webvtt|srt|ttml|xml|dfxp)$/i.test(path);
}

/** The paths that a pattern finds; an error where it finds none. `field` is the request's. */
export function matchingPaths(
  paths: readonly string[],
  pattern: string,
  field: string,
  boundMs = MATCHING_BOUND_MS,
): ReadonlySet<string> {
  const matches = select(paths, pattern, field, boundMs);
  if (matches.size === 0) throw noMatch(paths, pattern, field);
  return matches;
}

function noMatch(paths: readonly string[], pattern: string, field: string): AppError {
  const names = paths.slice(0, NAMES_SHOWN);
  return new AppError('PATTERN_NO_MATCH', { pattern, names, fileCount: paths.length }, { field });
}

/** Where patterns are matched; making a context takes longer than matching most patterns. */
const matching: { paths?: () => string[] } = createContext({});

/** A pattern without `/` matches in every subfolder. */
function select(
  paths: readonly string[],
  pattern: string,
  field: string,
  boundMs = MATCHING_BOUND_MS,
): ReadonlySet<string> {
  if (pattern.length === 0 || pattern.length > PATTERN_MAX_LENGTH) {
    throw new AppError(
      'PATTERN_INVALID',
      { pattern, problem: `it must have 1 to ${PATTERN_MAX_LENGTH} characters` },
      { field },
    );
  }
  const everywhere = !pattern.includes('/');
  const matches = compile(pattern.replace(/^\.?\//, ''), field);
  const claims = (path: string) => matches(everywhere ? path.slice(path.lastIndexOf('/') + 1) : path);
  try {
    // A glob becomes a regular expression, and there are some that take years: only a bound on a script interrupts them.
    matching.paths = () => paths.filter(claims);
    return new Set(runInContext('paths()', matching, { timeout: boundMs }));
  } catch (cause) {
    // Made in the context of the script, it is no Error of this one.
    if ((cause as { code?: unknown }).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw cause;
    const problem = 'matching it against the names does not come to an end. Use fewer wildcards';
    throw new AppError('PATTERN_INVALID', { pattern, problem }, { field, cause });
  } finally {
    delete matching.paths;
  }
}

function compile(pattern: string, field: string): (path: string) => boolean {
  try {
    return picomatch(pattern, { dot: true, nonegate: true, maxLength: PATTERN_MAX_LENGTH });
  } catch (cause) {
    throw new AppError('PATTERN_INVALID', { pattern, problem: 'it is not a well-formed glob' }, { field, cause });
  }
}
