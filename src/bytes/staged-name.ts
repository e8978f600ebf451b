import assert from 'node:assert/strict';
import { createHmac, type KeyObject } from 'node:crypto';

/** Attempt at an input, from which names of staged outputs and scratch spaces are derived. */
export interface StagingKey {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly attempt: number;
}

/** Prefix of names reserved for the service, in any spelling that a file system may treat as equal. */
const RESERVED_PREFIX = '.attestream';
/** `.attestream-<128 bits in hexadecimal>.part`; the folder that is being replaced ends in `.old`. */
const STAGED_NAME = String.raw`\.attestream-[0-9a-f]{32}\.(?:part|old)`;
const IS_STAGED_NAME = new RegExp(`^${STAGED_NAME}$`, 'i');
const HOLDS_STAGED_NAME = new RegExp(`(?:^|/)${STAGED_NAME}(?:/|$)`, 'i');
/** Smallest secret that names are derived from. */
const MIN_SECRET_SIZE_BYTES = 32;

/**
 * Returns the name under which a destination is staged, in the folder of the destination. It cannot be guessed without
 * the secret; with it, the staged output of an earlier attempt can be found.
 */
export function stagedNameOf(
  destination: string,
  { jobId, inputIndex, attempt }: StagingKey,
  secret: KeyObject,
): string {
  assert((secret.symmetricKeySize ?? 0) >= MIN_SECRET_SIZE_BYTES, 'names are derived from a secret');
  const name = createHmac('sha256', secret).update(JSON.stringify([destination, jobId, inputIndex, attempt]));
  return `.attestream-${name.digest('hex').slice(0, 32)}.part`;
}

/** Returns the name of an old publication while the one staged under `stagedName` replaces it. */
export function replacedNameOf(stagedName: string): string {
  return stagedName.replace(/\.part$/, '.old');
}

/** Tells whether a name comes from `stagedNameOf` or `replacedNameOf`: such a file or folder is never an input. */
export function isStagedName(name: string): boolean {
  return IS_STAGED_NAME.test(name);
}

/** Tells whether a path is, or lies inside, a staged output. */
export function isInStaging(path: string): boolean {
  return HOLDS_STAGED_NAME.test(path);
}

/**
 * Tells whether a name is reserved for the service, so that no request may give it to an output. Normalises characters
 * that some file systems ignore, and letters that they treat as equal.
 */
export function isReservedName(name: string): boolean {
  const plain = name
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}]/gu, '')
    .toLowerCase();
  return plain.trimStart().startsWith(RESERVED_PREFIX);
}
