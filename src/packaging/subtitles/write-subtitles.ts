import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { findProgram } from '#processes/find-program.ts';
import type { PlannedStream } from '../packaging-plan.ts';
import { feedError, inputArguments } from '../programs/ffmpeg.ts';
import { runPrograms } from '../programs/run-programs.ts';
import { readMatroskaSubtitles } from './matroska-subtitles.ts';
import { readMp4Subtitles } from './mp4-subtitles.ts';
import { parseTimedText } from './timed-text.ts';
import { clipCues, parseSubtitles, type Subtitles, shiftCues, webVttOf } from './web-vtt.ts';

interface SubtitleContext {
  /** End of the media, in seconds; cues are cut there. Null where it is unknown. */
  readonly endSeconds: number | null;
  /** Folder of input and output, and working directory of programs. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Subtitle file: its bytes, and its name in the folder of links. */
interface SubtitleInput {
  readonly source: ByteSource;
  readonly link: string;
}

/**
 * Writes the subtitles of a stream as WebVTT that ends with the media: the packager would add segments for later cues.
 * `output` is a name in `folder`. Returns whether there are any, because the packager refuses a file without cues. Throws
 * the errors of the readers, `PACKAGING_FFMPEG_MISSING` or `FEED_FAILED`.
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
  // Only a blank line ends a cue for the packager, which refuses a file longer than 64 KiB in which no cue has ended.
  await writeFile(join(folder, output), `${webVttOf({ head, cues })}\n`);
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
    ...inputArguments(stream, input),
    '-map',
    `0:s:${stream.indexOfKind}`,
    '-f',
    'webvtt',
    `file:${output}`,
  ];
  const failure = (end: Parameters<typeof feedError>[0]) => feedError(end, stream.file);
  let polls = 0;
  await runPrograms([{ title: 'ffmpeg', path, args, failure }], { folder, signal, poll: () => polls++ });
}
