import { createPrivateKey } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { SignerSettings } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import type { Signer, SigningAlgorithm } from '#provenance/signer.ts';

interface Context {
  readonly algorithm: SigningAlgorithm;
  readonly certificateChain: readonly Buffer[];
}

/**
 * Opens a "device" whose key is in the file `key`, and which does what the file `socket_path` says: `away`, `hangs`, `crashes` or
 * `wrong`; it signs where there is no such file.
 */
export async function openSigner(
  settings: SignerSettings & { readonly type: 'http' },
  { algorithm, certificateChain }: Context,
): Promise<Signer> {
  const { key, socket_path: state = '' } = settings;
  obey(state);
  const signer = createKeySigner(createPrivateKey(readFileSync(key)), algorithm, certificateChain);
  return {
    ...signer,
    sign: async (data) => {
      obey(state);
      return await signer.sign(data);
    },
    close: async () => writeFileSync(`${key}.closed`, ''),
  };
}

function obey(state: string): void {
  const order = existsSync(state) ? readFileSync(state, 'utf8') : '';
  if (order === 'away') throw new AppError('SIGNATURE_FAILED', { problem: 'the device is away' });
  if (order === 'wrong') throw new AppError('IDENTITY_INVALID', { file: state, problems: ['there is no such key'] });
  if (order === 'crashes') process.kill(process.pid, 'SIGKILL');
  if (order === 'hangs') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
