import type { Log } from './logger.ts';

/** A message of a log, with its fields. */
export interface CollectedMessage {
  readonly level: keyof Log;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps messages for a report: of checks that the service makes at its start, where they go to its log. */
export class CollectedLog implements Log {
  readonly messages: CollectedMessage[] = [];

  info(fields: object, message: string): void {
    this.#add('info', fields, message);
  }

  warn(fields: object, message: string): void {
    this.#add('warn', fields, message);
  }

  error(fields: object, message: string): void {
    this.#add('error', fields, message);
  }

  #add(level: keyof Log, fields: object, message: string): void {
    this.messages.push({ level, message, fields: { ...fields } });
  }
}
