import type { Writable } from 'node:stream';
import { type DestinationStream, type Logger, pino } from 'pino';
import { AppError } from '#errors/app-error.ts';

const DEFAULT_LEVEL = 'info';

/** The part of a pino logger that the modules below `service` write to. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * The user part, query and fragment of a URL may be a password or a presigned grant: none may reach a log. The text
 * searched is a line of JSON, so an escape such as `\"` is taken whole or not at all. White space ends a URL.
 */
const URL_SECRETS =
  /([a-z][a-z0-9+.-]{0,30}:\/\/)(?:(?:\\[^nrt]|[^\s"/?#@\\])*@)?((?:\\[^nrt]|[^\s"?#\\])*)(?:[?#](?:\\[^nrt]|[^\s"\\])*)?/gi;

/** Removes credentials, query and fragment from every URL in a line of JSON. */
export function withoutUrlSecrets(text: string): string {
  return text.replace(URL_SECRETS, '$1$2');
}

/**
 * Makes the logger of a process: lines for people where `output` is a terminal, else one JSON object a line. The library that
 * formats lines is loaded for terminals only.
 */
export async function openLogger(
  env: NodeJS.ProcessEnv,
  output: Writable & { readonly isTTY?: boolean },
): Promise<Logger> {
  if (output.isTTY !== true) return createLogger(env);
  const { prettyFactory } = await import('pino-pretty');
  const isColourful = 'hasColors' in output && typeof output.hasColors === 'function' && output.hasColors();
  const format = prettyFactory({ colorize: isColourful, translateTime: 'SYS:HH:MM:ss', singleLine: true });
  return createLogger(env, { write: (line) => void output.write(format(withoutControls(line))) });
}

/**
 * Replaces the control characters in a line of JSON, escaped or not, except line breaks and tabs: names of files and
 * messages come from others, and must not move the cursor of a terminal. The line is taken escape by escape.
 */
function withoutControls(line: string): string {
  return line.replace(CONTROLS, (_found, kept?: string) => kept ?? '\ufffd');
}

const CONTROLS = /\\u00(?:0[0-8b-f]|1[\da-f])|\\[bfr]|(\\.)|[\x7f-\x9f]/gi;

/**
 * Makes the service's logger: one JSON object a line, to standard output unless a destination is given. `LOG_LEVEL`
 * (`trace`, `debug`, `info`, `warn`, `error`, `fatal`, `silent`) sets what is written, `info` by default.
 */
export function createLogger(env: NodeJS.ProcessEnv, destination?: DestinationStream): Logger {
  const options = {
    level: levelOf(env) ?? DEFAULT_LEVEL,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: ['*.authorization', '*.headers.authorization', '*.private_key_passphrase', '*.tokens'],
    serializers: { err: describeError },
    hooks: { streamWrite: withoutUrlSecrets },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}

/** Describes an error without a stack where it names its cause: a stack looks like a bug. */
function describeError(error: Error): object {
  const described = pino.stdSerializers.err(error);
  return error instanceof AppError && error.isOperational ? { ...described, stack: undefined } : described;
}

/** Throws `LOG_LEVEL_UNKNOWN`. A logger can be made all the same, to say so. */
export function requireLogLevel(env: NodeJS.ProcessEnv): void {
  if (levelOf(env) === undefined)
    throw new AppError('LOG_LEVEL_UNKNOWN', { levels: [...Object.keys(pino.levels.values), 'silent'] });
}

function levelOf(env: NodeJS.ProcessEnv): string | undefined {
  const level = (env['LOG_LEVEL'] ?? DEFAULT_LEVEL).toLowerCase();
  return level === 'silent' || Object.hasOwn(pino.levels.values, level) ? level : undefined;
}
