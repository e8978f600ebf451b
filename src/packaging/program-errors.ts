import { AppError } from '#errors/app-error.ts';
import type { ProgramEnd } from './run-programs.ts';

/** What the packager's error codes mean, as the end of a sentence. */
const PACKAGER_PROBLEMS: Readonly<Record<string, string>> = {
  INVALID_ARGUMENT: 'it holds no stream where one was found before',
  UNIMPLEMENTED: 'the packager does not read this kind of file',
  FILE_FAILURE: 'a file could not be read or written',
  END_OF_STREAM: 'it ends before its first frame',
  PARSER_FAILURE:
    'its packets cannot be read on; the file is damaged, or uses a feature that the packager does not know',
  MUXER_FAILURE: 'its packets cannot be written as fragmented MP4',
  TRIVIAL: 'it holds nothing that can be packaged',
};

/** The packager's exit code for arguments that it does not take: they are ours, so that is a bug. */
const BAD_ARGUMENTS = 1;

/** `nameOf` gives the name of the file that an input path of the packager stands for. */
export function packagerError(end: ProgramEnd, nameOf: (inputPath: string) => string | null): Error {
  if (end.code === BAD_ARGUMENTS) return new Error(`the packager does not take its arguments: ${end.errorText}`);
  const [, name = '', text = ''] = /Packaging Error: \d+ \(([A-Z_]+)\): ?(.*)/.exec(end.errorText) ?? [];
  const file = fileIn(text, nameOf) ?? fileIn(end.errorText, nameOf);
  return new AppError('PACKAGER_FAILED', { file, problem: PACKAGER_PROBLEMS[name] ?? howItEnded(end) });
}

/** The first path in a message that stands for a file. */
function fileIn(text: string, nameOf: (inputPath: string) => string | null): string | null {
  for (const [path] of text.matchAll(/\/[^\s'",]+/g)) {
    const name = nameOf(path);
    if (name !== null) return name;
  }
  return null;
}

/** ffmpeg's last line is the plainest it has; paths of ours mean nothing to the caller. */
export function feedError(end: ProgramEnd, file: string, inputPath: string): AppError {
  const last = end.errorText.trimEnd().split('\n').at(-1) ?? '';
  const problem = last
    .replaceAll(`file:${inputPath}`, 'the file')
    .replaceAll(inputPath, 'the file')
    .replace(/^\[[^\]]*\] /, '')
    .replace(/[.:\s]+$/, '');
  return new AppError('FEED_FAILED', { file, problem: problem === '' ? howItEnded(end) : problem });
}

function howItEnded({ code, signal }: ProgramEnd): string {
  return signal === null
    ? `the program ended with the exit code ${code}`
    : `the program was ended by the signal ${signal}`;
}
