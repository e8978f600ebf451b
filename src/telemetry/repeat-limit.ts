import { AppError } from '#errors/app-error.ts';
import type { Log } from './logger.ts';

const INTERVAL_MS = 60_000;

type Level = 'warn' | 'error';

interface Line {
  readonly level: Level;
  readonly fields: object;
  readonly message: string;
}

/** Lines of a cause that were held back. */
interface Repeats {
  readonly count: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly last: Line;
}

/**
 * Limits warnings and errors of the same cause to one line in each interval, however many inputs and requests meet it. The first
 * is written at once; the others of an interval are written at its end as one line, the last of them with `repeats`, their number,
 * and from when to when they came: the cause may be over by then.
 * One that names a job is kept in the log as `info`; requests have lines of their own. Lines without a known cause are not limited.
 */
export function limitRepeats(log: Log, intervalMs: number = INTERVAL_MS): Log {
  /** By cause; null until the first repeat. */
  const open = new Map<string, Repeats | null>();

  const writeAt = (level: Level) => (fields: object, message: string) => {
    const cause = causeOf(fields, message);
    if (cause === null) return log[level](fields, message);
    const repeats = open.get(cause);
    if (repeats === undefined) {
      log[level](fields, message);
      return begin(cause);
    }
    const lastAt = new Date();
    const { count, firstAt } = repeats ?? { count: 0, firstAt: lastAt };
    open.set(cause, { count: count + 1, firstAt, lastAt, last: { level, fields, message } });
    if ('job_id' in fields) log.info(fields, message);
  };
  const begin = (cause: string): void => {
    open.set(cause, null);
    setTimeout(() => end(cause), intervalMs).unref();
  };
  const end = (cause: string): void => {
    const repeats = open.get(cause);
    open.delete(cause);
    if (repeats == null) return;
    const { count, firstAt, lastAt, last } = repeats;
    log[last.level](
      { ...last.fields, repeats: count, first_at: firstAt, last_at: lastAt },
      `repeated: ${last.message}`,
    );
    begin(cause);
  };
  return { info: (fields, message) => log.info(fields, message), warn: writeAt('warn'), error: writeAt('error') };
}

/** Returns the name of what is at fault for a line; null where it has none, such as a bug, or is a line of an `OutageLog`. */
function causeOf(fields: object, message: string): string | null {
  if ('since' in fields) return null;
  const { err, reason, dependency, receiver, exit_cause: exitCause } = fields as Readonly<Record<string, unknown>>;
  // Failures for want of the same thing have one cause together.
  if (err instanceof AppError) return err.isOperational ? err.reason : null;
  if (exitCause === undefined && err !== undefined) return null;
  const known = [reason, dependency, receiver, exitCause].filter((each) => typeof each === 'string');
  return known.length === 0 ? null : [message, ...known].join(' ');
}
