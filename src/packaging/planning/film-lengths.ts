import { AppError } from '#errors/app-error.ts';
import type { ProbedFolder } from '../probed-file.ts';
import type { AlignedStream } from './align-times.ts';

/** Tolerated difference in length of files with the same film, in seconds: encoders round, and add or drop a few frames. */
const MAX_DIFFERENCE_SECONDS = 1;

/** The same for the renditions of a publication, whose recording may have stopped a segment apart. */
const MAX_RENDITION_DIFFERENCE_SECONDS = 10;

/** Lengths that one error lists from each end. */
const MAX_LENGTHS_LISTED = 5;

interface FilmLength {
  readonly file: string;
  readonly seconds: number;
}

/**
 * Throws `PACKAGING_FILMS_DIFFER` where videos differ in length: they are no renditions of one film, and a player that
 * switches between them would show another one. Files that do not state their length are not compared.
 */
export function refuseDifferentFilms({ name, sharedTimeline }: ProbedFolder, chosen: readonly AlignedStream[]): void {
  const lengths = chosen.flatMap(lengthOf).sort((first, second) => second.seconds - first.seconds);
  const [longest, shortest] = [lengths[0], lengths.at(-1)];
  if (longest === undefined || shortest === undefined) return;
  const isPublication = lengths.every(({ file }) => sharedTimeline.has(file));
  const limitSeconds = isPublication ? MAX_RENDITION_DIFFERENCE_SECONDS : MAX_DIFFERENCE_SECONDS;
  if (longest.seconds - shortest.seconds <= limitSeconds) return;
  const isEveryListed = lengths.length <= 2 * MAX_LENGTHS_LISTED;
  const films = isEveryListed
    ? lengths
    : [...lengths.slice(0, MAX_LENGTHS_LISTED), ...lengths.slice(-MAX_LENGTHS_LISTED)];
  throw new AppError('PACKAGING_FILMS_DIFFER', { folder: name, films, count: lengths.length, limitSeconds });
}

/** Returns the length of a video in its file, in seconds; nothing for other streams, and where it is not known. */
function lengthOf({ file, stream }: AlignedStream): FilmLength[] {
  const { kind, durationSeconds, undecodableSeconds } = stream;
  if (kind !== 'video' || durationSeconds === null) return [];
  return [{ file: file.path, seconds: durationSeconds + undecodableSeconds }];
}
