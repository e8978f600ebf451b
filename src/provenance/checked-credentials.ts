import { hash } from 'node:crypto';
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RELEASE } from '#config/release.ts';
import type { CredentialDescription } from './signing-identity.ts';

/**
 * Remembers in a folder of the user which credentials both official readers have accepted: empty files, each named for the release,
 * the algorithm and the certificates. Only of keys in files: a device is a part that may work differently today.
 */
export class CheckedCredentials {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async has(credential: CredentialDescription): Promise<boolean> {
    if (credential.keyKind !== 'pem') return false;
    return await access(this.#fileOf(credential)).then(
      () => true,
      () => false,
    );
  }

  /** Remembers a credential. Where the folder cannot be written, it is checked again the next time. */
  async add(credential: CredentialDescription): Promise<void> {
    if (credential.keyKind !== 'pem') return;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeFile(this.#fileOf(credential), '');
    } catch {
      // See above.
    }
  }

  #fileOf({ algorithm, certificateChain }: CredentialDescription): string {
    const digest = hash('sha256', JSON.stringify([RELEASE.version, algorithm, certificateChain]), 'hex');
    return join(this.#folder, `checked-${digest}`);
  }
}
