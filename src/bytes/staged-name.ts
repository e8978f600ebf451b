import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';

/** Tells apart the stagings of different inputs and attempts. */
export interface StagingKey {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly attempt: number;
}

/**
 * `.<8 hex digits of the destination's hash>.<job>-<input>-<attempt>.part`: hidden, unique, at most 120 bytes. What is
 * being replaced ends in `.old` meanwhile.
 */
const STAGED_NAME = /^\.[0-9a-f]{8}\.[A-Za-z0-9_-]{1,64}-\d{1,9}-\d{1,9}\.(part|old)$/;

/** The name under which a destination is staged, in the folder of the destination. */
export function stagedNameOf(destination: string, key: StagingKey): string {
  const hash = createHash('sha256').update(destination).digest('hex').slice(0, 8);
  const name = `.${hash}.${key.jobId}-${key.inputIndex}-${key.attempt}.part`;
  assert(isStagedName(name), 'a job id is made of at most 64 letters, digits, _ and -');
  return name;
}

/** The name that a publication has while the one staged under `stagedName` takes its place. */
export function replacedNameOf(stagedName: string): string {
  return stagedName.replace(/\.part$/, '.old');
}

/** Whether a name is one that `stagedNameOf` or `replacedNameOf` makes: what has it is never an input. */
export function isStagedName(name: string): boolean {
  return STAGED_NAME.test(name);
}
