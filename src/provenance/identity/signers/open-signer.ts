import type { KeyObject } from 'node:crypto';
import type { SignerSettings } from '#config/identities.ts';
import type { Signer, SigningAlgorithm } from '../../signer.ts';

/** Opens a key in a device. */
export async function openSigner(
  settings: Exclude<SignerSettings, { readonly type: 'pem' | 'development' }>,
  _context: {
    readonly algorithm: SigningAlgorithm;
    readonly publicKey: KeyObject;
    readonly certificateChain: readonly Buffer[];
    readonly stateDir: string;
  },
): Promise<Signer & { close(): Promise<void> }> {
  throw new Error(`signers of the type ${settings.type} are not there yet`);
}
