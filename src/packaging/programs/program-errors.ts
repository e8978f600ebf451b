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

/** Sent by people, init systems and hosts that shut down, to all processes at once; never for what is in a file. */
const REQUESTS_TO_END: ReadonlySet<NodeJS.Signals | null> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP'] as const);

/** What ffmpeg ends with when it was told to end; and also, but not without saying so, when something is not permitted. */
const FFMPEG_TOLD_TO_END = 255;

/** `names` gives the files that the packager's inputs stand for. */
export function packagerError(end: ProgramEnd, names: ReadonlyMap<string, string>): Error {
  if (REQUESTS_TO_END.has(end.signal)) return new AppError('PROGRAM_TOLD_TO_END', { program: 'The packager' });
  if (end.code === BAD_ARGUMENTS) return new Error(`the packager does not take its arguments: ${end.errorText}`);
  const [, name = ''] = /Packaging Error: \d+ \(([A-Z_]+)\)/.exec(end.errorText) ?? [];
  const [input = ''] = /\b(?:source|feed)-\d+/.exec(end.errorText) ?? [];
  const problem = PACKAGER_PROBLEMS[name] ?? howItEnded(end);
  return new AppError('PACKAGER_FAILED', { file: names.get(input) ?? onlyOne(names), problem });
}

/** The packager does not always say which file it gave up, which need not be said where there is one. */
function onlyOne(names: ReadonlyMap<string, string>): string | null {
  const [file, ...others] = new Set(names.values());
  return file !== undefined && others.length === 0 ? file : null;
}

/** ffmpeg's last line is the plainest it has; names of ours mean nothing to the caller. */
export function feedError(end: ProgramEnd, file: string): AppError {
  if (REQUESTS_TO_END.has(end.signal) || (end.code === FFMPEG_TOLD_TO_END && !/not permitted/.test(end.errorText)))
    return new AppError('PROGRAM_TOLD_TO_END', { program: 'ffmpeg' });
  const last = end.errorText.trimEnd().split('\n').at(-1) ?? '';
  const plain = last.replaceAll(/(?:file:)?(?:source|feed)-\d+/g, 'the file').replace(/^\[[^\]]*\] /, '');
  const problem = plain.replace(/[.:\s]+$/, '');
  return new AppError('FEED_FAILED', { file, problem: problem === '' ? howItEnded(end) : problem });
}

function howItEnded({ code, signal }: ProgramEnd): string {
  return signal === null
    ? `the program ended with the exit code ${code}`
    : `the program was ended by the signal ${signal}`;
}
