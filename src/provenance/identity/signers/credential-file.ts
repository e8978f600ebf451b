import { readFile } from 'node:fs/promises';
import { AppError } from '#errors/app-error.ts';
import { problemOf } from '#errors/system-problem.ts';

/** A credential is short; nothing longer is read. */
const MAX_CREDENTIAL_CHARACTERS = 64 * 1024;

/** Reads a PIN, a token or the like, without the white space around it. Throws `SIGNER_CREDENTIAL_UNREADABLE`. */
export async function readCredential(file: string): Promise<string> {
  const text = (await readCredentialFile(file)).toString('utf8').trim();
  if (text !== '' && text.length <= MAX_CREDENTIAL_CHARACTERS) return text;
  throw new AppError('SIGNER_CREDENTIAL_UNREADABLE', { file, problem: text === '' ? 'it is empty' : 'it is too long' });
}

/** Reads a file of a credential. Throws `SIGNER_CREDENTIAL_UNREADABLE`. */
export async function readCredentialFile(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new AppError('SIGNER_CREDENTIAL_UNREADABLE', { file, problem: problemOf(cause) }, { cause });
  }
}
