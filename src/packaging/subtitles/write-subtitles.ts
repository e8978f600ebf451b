import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { findProgram } from '#processes/find-program.ts';
import type { PlannedStream } from '../planning/packaging-plan.ts';
import { readingArguments } from '../programs/feed-arguments.ts';
import { feedError } from '../programs/program-errors.ts';
import { runPrograms } from '../programs/run-programs.ts';
import { readMatroskaSubtitles } from './matroska-subtitles.ts';
import { readMp4Subtitles } from './mp4-subtitles.ts';
import { parseTimedText } from './timed-text.ts';
import { clipCues, parseSubtitles, type Subtitles, shiftCues, webVttOf } from './web-vtt.ts';

interface SubtitleContext {
  /** Where the film ends, in seconds; cues do not go on past it. Null where nobody knows. */
  readonly endSeconds: number | null;
  /** Where input and output lie, and programs run. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** A file of subtitles: its bytes, and its name in the folder of the links. */
interface SubtitleInput {
  readonly source: ByteSource;
  readonly link: string;
}

/**
 * Writes the subtitles of a stream as WebVTT that ends with the film: the packager would add segments for later cues.
 * `output` is a name in `folder`. Returns whether there are any; the packager refuses a file of none.
 */
export async function writeSubtitles(
  stream: PlannedStream,
  input: SubtitleInput,
  output: string,
  context: SubtitleContext,
): Promise<boolean> {
  const { endSeconds, folder } = context;
  const subtitles = shiftCues(await readSubtitles(stream, input, output, context), stream.shiftSeconds);
  const { head, cues } = endSeconds === null ? subtitles : clipCues(subtitles, endSeconds);
  await writeFile(join(folder, output), webVttOf({ head, cues }));
  return cues.length > 0;
}

async function readSubtitles(
  stream: PlannedStream,
  { source, link }: SubtitleInput,
  output: string,
  context: SubtitleContext,
): Promise<Subtitles> {
  const { route, indexOfKind } = stream;
  const { folder, signal } = context;
  const reader = route.kind === 'text' ? route.reader : 'file';
  if (reader === 'matroska') return await readMatroskaSubtitles(source, indexOfKind, signal);
  if (reader === 'mp4') return await readMp4Subtitles(source, indexOfKind, signal);
  if (reader === 'file') return readFileOf(stream, await readRange(source, 0, source.sizeBytes, signal));
  await extract(stream, link, output, context);
  return parseSubtitles(await readFile(join(folder, output)));
}

function readFileOf({ container, file }: PlannedStream, bytes: Uint8Array): Subtitles {
  return container === 'ttml' ? parseTimedText(bytes, file) : parseSubtitles(bytes);
}

async function extract(
  stream: PlannedStream,
  input: string,
  output: string,
  { folder, signal }: SubtitleContext,
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
