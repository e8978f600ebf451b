import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';

const SECRET_BYTES = 32;

/** Error codes of file systems without hard links. */
const WITHOUT_LINKS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/**
 * The secret that the names of stagings are derived from: `<recordsDir>/staging-secret`, made when it is first needed.
 * Nodes that share their outputs share it, so that each can remove what a lost one staged.
 */
export function stagingSecretIn(recordsDir: string): Buffer {
  const path = join(recordsDir, 'staging-secret');
  const known = readSecret(path);
  if (known?.length === SECRET_BYTES) return known;
  mkdirSync(recordsDir, { recursive: true, mode: 0o700 });
  const unfinished = `${path}.${randomUUID()}`;
  try {
    writeSecret(unfinished);
    // One that is too short was torn when the host lost power.
    if (known === null) publish(unfinished, path);
    else renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return readFileSync(path);
}

function readSecret(path: string): Buffer | null {
  try {
    return readFileSync(path);
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function writeSecret(path: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, randomBytes(SECRET_BYTES));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Publishes a secret. When several processes do so at once, one wins and all use its secret. */
function publish(unfinished: string, path: string): void {
  try {
    linkSync(unfinished, path);
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (WITHOUT_LINKS.includes(code)) renameSync(unfinished, path);
    else if (code !== 'EEXIST') throw error;
  }
}
