import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';

/** Tells apart the stagings of different inputs and attempts. */
export interface StagingKey {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly attempt: number;
}

/** Names that start like this, in any spelling that a file system may take for the same, belong to the service. */
const RESERVED_START = '.attestream';

/** `.attestream-<128 bits in hexadecimal>.part`. What is being replaced ends in `.old` meanwhile. */
const STAGED_NAME = String.raw`\.attestream-[0-9a-f]{32}\.(?:part|old)`;
const IS_STAGED_NAME = new RegExp(`^${STAGED_NAME}$`, 'i');
const HOLDS_STAGED_NAME = new RegExp(`(?:^|/)${STAGED_NAME}(?:/|$)`, 'i');

/** The shortest secret that names are derived from, in bytes. */
const SECRET_MIN_BYTES = 32;

/**
 * The name under which a destination is staged, in the folder of the destination. Nobody who lacks the secret can guess
 * it; whoever has it finds again what an earlier attempt staged.
 */
export function stagedNameOf(destination: string, { jobId, inputIndex, attempt }: StagingKey, secret: Buffer): string {
  assert(secret.length >= SECRET_MIN_BYTES, 'names are derived from a secret');
  const name = createHmac('sha256', secret).update(JSON.stringify([destination, jobId, inputIndex, attempt]));
  return `.attestream-${name.digest('hex').slice(0, 32)}.part`;
}

/** The name that a publication has while the one staged under `stagedName` takes its place. */
export function replacedNameOf(stagedName: string): string {
  return stagedName.replace(/\.part$/, '.old');
}

/** Tells a name that `stagedNameOf` or `replacedNameOf` makes: what has it is never an input. */
export function isStagedName(name: string): boolean {
  return IS_STAGED_NAME.test(name);
}

/** Tells a path that is, or lies inside, something staged. */
export function isInStaging(path: string): boolean {
  return HOLDS_STAGED_NAME.test(path);
}

/**
 * Tells a name that no request may give to an output: one under which this service stages, or keeps something beside
 * outputs. Characters that some file systems ignore, and letters that they take for the same, are seen through.
 */
export function isReservedName(name: string): boolean {
  const plain = name
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}]/gu, '')
    .toLowerCase();
  return plain.trimStart().startsWith(RESERVED_START);
}
