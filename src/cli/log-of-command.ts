import { catalogue, type Reason } from '#errors/catalogue.ts';
import { createLogger, type Log } from '#telemetry/logger.ts';
import type { Terminal } from './terminal.ts';

/**
 * Returns the log of a command: with `LOG_LEVEL` that of the service, on standard error. Without it, only what results withhold
 * from callers of a service is told, for whoever runs a command is the operator too.
 */
export function logOfCommand(terminal: Terminal): Log {
  if (process.env['LOG_LEVEL'] !== undefined) return createLogger(process.env, process.stderr);
  const tell = (fields: LogFields) => {
    const { reason, error, stack } = fields;
    if (stack !== undefined) terminal.problem(stack);
    if (error !== undefined && reason !== undefined && catalogue[reason].callersSee !== undefined)
      terminal.problem(error);
  };
  return { info: () => undefined, warn: tell, error: tell };
}

/** Fields of the lines about failed inputs. */
interface LogFields {
  readonly reason?: Reason;
  readonly error?: string;
  readonly stack?: string;
}
