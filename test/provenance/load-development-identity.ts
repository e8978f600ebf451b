// Forked by tests: loads the development identity in a file and tells its parent which one it got.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { loadDevelopmentIdentity } from '#provenance/identity/development-identity.ts';

const [, , file] = process.argv;
assert(file !== undefined);
const { signer } = await loadDevelopmentIdentity(file);
process.send?.(new X509Certificate(signer.certificateChain[0] as Buffer).fingerprint256);
process.disconnect();
