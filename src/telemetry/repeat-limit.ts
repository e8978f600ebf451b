import { AppError } from '#errors/app-error.ts';
import type { Log } from './logger.ts';

const INTERVAL_MS = 60_000;

type Level = 'warn' | 'error';

interface Repeats {
  count: number;
  last: { readonly level: Level; readonly fields: object; readonly message: string };
}

/**
 * Limits warnings and errors of the same cause to one line in each interval, however many inputs and requests meet it. The first
 * is written at once; the others of an interval are written at its end as one line, the last of them with `repeats`, their number.
 * One that names a job is kept in the log as `info`; requests have lines of their own. Lines without a known cause are not limited.
 */
export function limitRepeats(log: Log, intervalMs: number = INTERVAL_MS): Log {
  const open = new Map<string, Repeats>();

  const writeAt = (level: Level) => (fields: object, message: string) => {
    const cause = causeOf(fields, message);
    if (cause === null) return log[level](fields, message);
    const repeats = open.get(cause);
    const last = { level, fields, message };
    if (repeats !== undefined) {
      repeats.count += 1;
      repeats.last = last;
      if ('job_id' in fields) log.info(fields, message);
      return;
    }
    log[level](fields, message);
    begin(cause, last);
  };
  const begin = (cause: string, last: Repeats['last']): void => {
    open.set(cause, { count: 0, last });
    setTimeout(() => end(cause), intervalMs).unref();
  };
  const end = (cause: string): void => {
    const { count, last } = open.get(cause) ?? {};
    open.delete(cause);
    if (last === undefined || count === undefined || count === 0) return;
    log[last.level]({ ...last.fields, repeats: count }, last.message);
    begin(cause, last);
  };
  return { info: (fields, message) => log.info(fields, message), warn: writeAt('warn'), error: writeAt('error') };
}

/** Returns the name of what is at fault for a line; null where it has none, such as a bug. */
function causeOf(fields: object, message: string): string | null {
  const { err, reason, dependency, receiver, exit_cause: exitCause } = fields as Readonly<Record<string, unknown>>;
  // Failures for want of the same thing have one cause together.
  if (err instanceof AppError) return err.isOperational ? err.reason : null;
  if (exitCause === undefined && err !== undefined) return null;
  const known = [reason, dependency, receiver, exitCause].filter((each) => typeof each === 'string');
  return known.length === 0 ? null : [message, ...known].join(' ');
}
