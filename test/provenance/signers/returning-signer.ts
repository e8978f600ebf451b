import { createPublicKey } from 'node:crypto';
import type { AppError } from '#errors/app-error.ts';
import { openSigner } from '#provenance/identity/signers/open-signer.ts';
import { testIdentity } from '../../support/manifests/test-identity.ts';
import { makeToken } from './softhsm.ts';

// Loads a module while its token is away, and signs when it is back.
const { privateKey, signer } = await testIdentity();
const token = makeToken({ key: privateKey });
const open = () =>
  openSigner(token.settings('key'), {
    algorithm: 'es256',
    publicKey: createPublicKey(privateKey),
    certificateChain: signer.certificateChain,
    stateDir: token.newStateDir(),
  });
token.takeAway();
await open().catch((error: AppError) => console.log(error.reason));
token.bringBack();
await open();
console.log('signed');
