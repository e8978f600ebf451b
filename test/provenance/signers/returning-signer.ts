import { createPublicKey } from 'node:crypto';
import { renameSync } from 'node:fs';
import { join } from 'node:path';
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
const [tokens, elsewhere] = [join(token.folder, 'tokens'), join(token.folder, 'elsewhere')];
renameSync(tokens, elsewhere);
await open().catch((error: AppError) => console.log(error.reason));
renameSync(elsewhere, tokens);
await open();
console.log('signed');
