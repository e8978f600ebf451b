import { hash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';

// Tokens lock after a few wrong PINs, so every attempt is recorded: in a file that is named for the PIN's file, the token, and
// the time at which the PIN's file was changed. It never holds the PIN, nor a hash of it, which could be searched.
const PREFIX = 'refused-pin-';
const REFUSED = 'refused\n';

/** After this time an attempt counts as broken off. */
const MAX_ATTEMPT_MS = 10_000;
const POLL_INTERVAL_MS = 50;

/** The PIN of a token, and the folder with the records of attempts. */
export interface PinSource {
  readonly file: string;
  readonly token: string;
  readonly stateDir: string;
}

/**
 * Logs in with a PIN, which is tried once: after it was refused not again before its file changes, whichever process of
 * this host asks. The attempt is recorded before it is made: one that is broken off counts as refused. Throws
 * `SIGNER_PIN_REFUSED`, `SIGNER_CREDENTIAL_UNREADABLE`, or what the login throws.
 */
export async function tryPin(source: PinSource, logIn: (pin: string) => 'accepted' | 'refused'): Promise<void> {
  const { pin, changedMs } = await readPin(source.file);
  const record = join(source.stateDir, `${PREFIX}${digestOf(source)}-${changedMs}`);
  await mkdir(source.stateDir, { recursive: true, mode: 0o700 });
  await reserve(source, record);
  let outcome: 'accepted' | 'refused' | 'failed' = 'failed';
  try {
    outcome = logIn(pin);
  } finally {
    if (outcome !== 'refused') await rm(record, { force: true });
  }
  if (outcome === 'accepted') return await forgetRefusedPins(source.stateDir, digestOf(source));
  await writeFile(record, REFUSED);
  throw refused(source);
}

/**
 * Lets PINs that were refused be tried again: all of them, because the operator asked for it, or those of one source. Attempts that
 * other processes make now stay recorded.
 */
export async function forgetRefusedPins(stateDir: string, digest = ''): Promise<void> {
  const names = await readdir(stateDir).catch(() => []);
  const records = names.filter((name) => name.startsWith(`${PREFIX}${digest}`)).map((name) => join(stateDir, name));
  const forget = async (record: string) => (await isRefusal(record)) && rm(record, { force: true });
  await Promise.all(records.map(forget));
}

/** Makes the record. Waits while another process tries the same PIN. */
async function reserve(source: PinSource, record: string): Promise<void> {
  for (;;) {
    try {
      return await writeFile(record, '', { flag: 'wx', mode: 0o600, flush: true });
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    if (await isRefusal(record)) throw refused(source);
    await sleep(POLL_INTERVAL_MS);
  }
}

async function isRefusal(record: string): Promise<boolean> {
  try {
    if ((await readFile(record, 'utf8')) === REFUSED) return true;
    return Date.now() - (await stat(record)).mtimeMs > MAX_ATTEMPT_MS;
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function readPin(file: string): Promise<{ readonly pin: string; readonly changedMs: number }> {
  try {
    // Time and contents are of the same file, also where it is replaced meanwhile.
    await using handle = await open(file);
    const { mtimeMs: changedMs } = await handle.stat();
    return { pin: (await handle.readFile('utf8')).replace(/\r?\n$/, ''), changedMs };
  } catch (cause) {
    throw new AppError('SIGNER_CREDENTIAL_UNREADABLE', { file, problem: problemOf(cause) }, { cause });
  }
}

function digestOf({ file, token }: PinSource): string {
  return hash('sha256', JSON.stringify([file, token])).slice(0, 32);
}

function refused({ file, token }: PinSource): AppError {
  return new AppError('SIGNER_PIN_REFUSED', { file, token });
}
