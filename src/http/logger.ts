import { type DestinationStream, type Logger, pino } from 'pino';

/**
 * The user part, query and fragment of a URL may be a password or a presigned grant: none may reach a log. What is
 * searched is a line of JSON, so an escape such as `\"` is taken whole or not at all. White space ends a URL.
 */
const URL_SECRETS =
  /([a-z][a-z0-9+.-]{0,30}:\/\/)(?:(?:\\[^nrt]|[^\s"/?#@\\])*@)?((?:\\[^nrt]|[^\s"?#\\])*)(?:[?#](?:\\[^nrt]|[^\s"\\])*)?/gi;

/** Removes credentials, query and fragment from every URL in a line of JSON. */
export function withoutUrlSecrets(text: string): string {
  return text.replace(URL_SECRETS, '$1$2');
}

/**
 * Makes the service's logger: one JSON object a line, to standard output unless a destination is given. `LOG_LEVEL`
 * (`trace`, `debug`, `info`, `warn`, `error`, `fatal`, `silent`) sets what is written, `info` by default.
 */
export function createLogger(env: NodeJS.ProcessEnv, destination?: DestinationStream): Logger {
  const level = (env['LOG_LEVEL'] ?? 'info').toLowerCase();
  const known = level === 'silent' || Object.hasOwn(pino.levels.values, level);
  const options = {
    level: known ? level : 'info',
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: ['*.authorization', '*.headers.authorization', '*.private_key_passphrase', '*.tokens', '*.secret'],
    hooks: { streamWrite: withoutUrlSecrets },
  };
  const logger = destination === undefined ? pino(options) : pino(options, destination);
  if (!known)
    logger.warn('LOG_LEVEL names no level; "info" is used. Levels: trace, debug, info, warn, error, fatal, silent.');
  return logger;
}
