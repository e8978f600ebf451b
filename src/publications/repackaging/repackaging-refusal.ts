import { AppError } from '#errors/app-error.ts';

/** Says why a publication cannot be packaged anew, and where; the problem is a sentence. */
export function refusal(playlist: string, line: number, problem: string): AppError {
  return new AppError('PUBLICATION_NOT_REPACKAGED', { playlist, line, problem });
}
