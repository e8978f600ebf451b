import { AppError } from '#errors/app-error.ts';
import type { ActionFailure } from './sqlite-messages.ts';

/** What went wrong in the thread of the database, as data. */
export function failureOf(error: unknown): ActionFailure {
  if (error instanceof AppError) return { error: error.toData() };
  const { errcode, message } = error as { errcode?: number; message?: string };
  return { code: errcode ?? 0, message: message ?? String(error) };
}
