import { createContext, runInContext } from 'node:vm';
import picomatch from 'picomatch';
import { MAX_GLOB_LENGTH } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { needsPackaging } from './playlists/file-names.ts';
import type { PublicationPatterns } from './publication.ts';

/** Time limit of matching one glob. An ordinary glob takes a hundredth of it for 100,000 paths. */
const MATCHING_TIMEOUT_MS = 10_000;
/** Limit on the names of files that an error shows. */
export const MAX_NAMES_SHOWN = 10;

/** The field of a request whose patterns are of the entries of a publication, and not of all files. */
export const ENTRIES_FIELD = 'params.entries';

/** The paths of a folder that each of the three patterns matches. */
export interface MatchedPaths {
  readonly playlists: ReadonlySet<string>;
  readonly inits: ReadonlySet<string>;
  readonly fragments: ReadonlySet<string>;
}

/**
 * Matches the request's three patterns against the folder's paths. Throws `PATTERN_INVALID`, `PATTERN_NO_MATCH`
 * when a pattern matches nothing, and `SEGMENTS_NEED_PACKAGING` for segments of transport streams, which no init
 * pattern can match.
 */
export function matchPatterns(paths: readonly string[], patterns: PublicationPatterns): MatchedPaths {
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

/**
 * Returns the paths that a pattern matches. Throws `PATTERN_NO_MATCH` when there are none, `PATTERN_INVALID` when the
 * pattern is malformed or too slow.
 */
export function matchingPaths(
  paths: readonly string[],
  pattern: string,
  field: string,
  timeoutMs = MATCHING_TIMEOUT_MS,
): ReadonlySet<string> {
  const matches = select(paths, pattern, field, timeoutMs);
  if (matches.size === 0) throw noMatch(paths, pattern, field);
  return matches;
}

function noMatch(paths: readonly string[], pattern: string, field: string): AppError {
  const names = paths.slice(0, MAX_NAMES_SHOWN);
  const areEntries = field === ENTRIES_FIELD;
  const details = { pattern, names, fileCount: paths.length, ...(areEntries && { areEntries }) };
  return new AppError('PATTERN_NO_MATCH', details, { field });
}

/** The context that patterns are matched in. Making one takes longer than matching most patterns. */
const matching: { paths?: () => string[] } = createContext({});

/** Returns the paths that a pattern matches. One without `/` matches in every subfolder. Throws `PATTERN_INVALID`. */
function select(
  paths: readonly string[],
  pattern: string,
  field: string,
  timeoutMs = MATCHING_TIMEOUT_MS,
): ReadonlySet<string> {
  if (pattern.length === 0 || pattern.length > MAX_GLOB_LENGTH) {
    const problem = `it must have 1 to ${MAX_GLOB_LENGTH} characters`;
    throw new AppError('PATTERN_INVALID', { pattern, problem }, { field });
  }
  const everywhere = !pattern.includes('/');
  const matches = compile(pattern.replace(/^\.?\//, ''), field);
  const matchesPath = (path: string) => matches(everywhere ? path.slice(path.lastIndexOf('/') + 1) : path);
  try {
    // A glob becomes a regular expression, and there are some that take years: only a bound on a script interrupts them.
    matching.paths = () => paths.filter(matchesPath);
    return new Set(runInContext('paths()', matching, { timeout: timeoutMs }));
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
    return picomatch(pattern, { dot: true, nonegate: true, maxLength: MAX_GLOB_LENGTH });
  } catch (cause) {
    throw new AppError('PATTERN_INVALID', { pattern, problem: 'it is not a well-formed glob' }, { field, cause });
  }
}
