import { catalogue, type Reason } from '#errors/catalogue.ts';
import { createLogger, type Log } from '#telemetry/logger.ts';
import { inCommandWords } from './command-words.ts';
import type { Terminal } from './terminal.ts';

/**
 * Returns the log of a command: with `LOG_LEVEL` that of the service, on standard error. Without it, it tells why an input is tried
 * again, and what results withhold from callers of a service, for whoever runs a command is the operator too.
 */
export function logOfCommand(terminal: Terminal): Log {
  if (process.env['LOG_LEVEL'] !== undefined) return createLogger(process.env, process.stderr);
  const tell = (fields: LogFields) => {
    const { reason, error, stack } = fields;
    if (stack !== undefined) terminal.problem(stack);
    if (error !== undefined && reason !== undefined && catalogue[reason].callersSee !== undefined)
      terminal.problem(error);
  };
  const tellOfRetry = ({ input, problem, pause_ms: pauseMs }: LogFields) => {
    if (problem === undefined || pauseMs === undefined) return;
    terminal.note(`${input}: ${inCommandWords(problem)} Trying again in ${Math.round(pauseMs / 1000)} s.`);
  };
  return { info: tellOfRetry, warn: tell, error: tell };
}

/** Fields of the lines about failed inputs, and about those that are tried again. */
interface LogFields {
  readonly input?: string;
  readonly problem?: string;
  readonly pause_ms?: number;
  readonly reason?: Reason;
  readonly error?: string;
  readonly stack?: string;
}
