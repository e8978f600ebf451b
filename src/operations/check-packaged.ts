import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { PackagingPlan, PlannedStream } from '#packaging/planning/packaging-plan.ts';
import type { HlsMedia } from '#publications/reading/hls-playlist.ts';
import { readPublication } from '#publications/reading/read-publication.ts';

/** What a rendition may lack of what probing promised, in seconds and as a part of it: sources round, and clips end early. */
const MISSING_SECONDS = 0.5;
const MISSING_PART = 0.01;

/** Segments of two renditions that begin so near to each other, in seconds, begin together. */
const ALIGNMENT_SECONDS = 0.1;

const PATTERNS = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };

/**
 * Holds a packaged publication against its plan: every playlist parses and names only files that are there, every rendition
 * is as long as its source. Throws an AppError where it is not; returns as warnings where renditions do not align.
 */
export async function checkPackaged(
  plan: PackagingPlan,
  folder: SourceFolder,
  signal: AbortSignal,
): Promise<Warning[]> {
  for (const stream of plan.streams) checkPresent(stream, folder);
  const { playlists } = await readPublication(folder, PATTERNS, signal);
  const starts = plan.streams.map((stream) => {
    const playlist = playlists.find(({ path }) => path === `${stream.folder}/index.m3u8`);
    if (playlist?.kind !== 'hls-media') throw invalid(`${stream.folder}/index.m3u8`, 'it is missing');
    checkLength(stream, playlist);
    return { stream, starts: startsOf(playlist) };
  });
  const video = starts.filter(({ stream }) => stream.kind === 'video');
  const [first, ...others] = video;
  if (first === undefined) return [];
  const uneven = others.filter((other) => !isAligned(first.starts, other.starts));
  return uneven.map(({ stream }) =>
    warning('KEY_FRAMES_NOT_ALIGNED', { file: stream.file, otherFile: first.stream.file }),
  );
}

/** The packager writes nothing of a stream in which it finds no packet, and says nothing of it. */
function checkPresent(
  { file, kind, folder: rendition, durationSeconds }: PlannedStream,
  { files }: SourceFolder,
): void {
  if (kind === 'text' || files.some(({ path }) => path === `${rendition}/index.m3u8`)) return;
  throw new AppError('PACKAGED_CUT_SHORT', { file, kind, seconds: 0, expectedSeconds: durationSeconds ?? 0 });
}

function checkLength({ file, kind, durationSeconds, startSeconds }: PlannedStream, { segments }: HlsMedia): void {
  if (durationSeconds === null || kind === 'text') return;
  const seconds = segments.reduce((sum, segment) => sum + segment.durationSeconds, 0);
  const expectedSeconds = durationSeconds - Math.max(-startSeconds, 0);
  const missing = expectedSeconds - seconds;
  if (missing <= Math.max(MISSING_SECONDS, expectedSeconds * MISSING_PART)) return;
  throw new AppError('PACKAGED_CUT_SHORT', { file, kind, seconds, expectedSeconds });
}

/** Where segments begin, in seconds from the first. */
function startsOf({ segments }: HlsMedia): number[] {
  let at = 0;
  return segments.map(({ durationSeconds }) => {
    const start = at;
    at += durationSeconds;
    return start;
  });
}

function isAligned(first: readonly number[], second: readonly number[]): boolean {
  const count = Math.min(first.length, second.length);
  if (Math.abs(first.length - second.length) > 1) return false;
  return first
    .slice(0, count)
    .every((start, index) => Math.abs(start - (second[index] as number)) <= ALIGNMENT_SECONDS);
}

function invalid(file: string, problem: string): AppError {
  return new AppError('PACKAGED_OUTPUT_INVALID', { file, problem });
}
