import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { readingArguments } from './feed-arguments.ts';
import type { PlannedStream } from './packaging-plan.ts';
import { needsFfmpeg } from './plan-packaging.ts';
import { feedError } from './program-errors.ts';
import { findProgram } from './program-paths.ts';
import { runPrograms } from './run-programs.ts';
import { clipCues, parseSubtitles, webVttOf } from './web-vtt.ts';

interface SubtitleContext {
  /** Where the film ends, in seconds; cues do not go on past it. Null where nobody knows. */
  readonly endSeconds: number | null;
  /** Where input and output lie, and programs run. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Writes the subtitles of a stream as WebVTT that ends with the film: the packager would add segments for later cues.
 * `input` is read as it is, or by ffmpeg where the subtitles lie among pictures and sound. Both are names in `folder`.
 */
export async function writeSubtitles(
  stream: PlannedStream,
  input: string,
  output: string,
  { endSeconds, folder, signal }: SubtitleContext,
): Promise<void> {
  if (needsFfmpeg(stream)) await extract(stream, input, output, { folder, signal });
  const subtitles = parseSubtitles(await readFile(join(folder, needsFfmpeg(stream) ? output : input)));
  await writeFile(join(folder, output), webVttOf(endSeconds === null ? subtitles : clipCues(subtitles, endSeconds)));
}

async function extract(
  stream: PlannedStream,
  input: string,
  output: string,
  { folder, signal }: Pick<SubtitleContext, 'folder' | 'signal'>,
): Promise<void> {
  const path = findProgram('ffmpeg');
  if (path === null) throw new AppError('PACKAGING_FFMPEG_MISSING', { files: [stream.file] });
  const args = [
    ...readingArguments(stream, input),
    '-map',
    `0:s:${stream.indexOfKind}`,
    '-f',
    'webvtt',
    `file:${output}`,
  ];
  const failure = (end: Parameters<typeof feedError>[0]) => feedError(end, stream.file);
  let looks = 0;
  await runPrograms([{ title: 'ffmpeg', path, args, failure }], { folder, signal, look: () => looks++ });
}
