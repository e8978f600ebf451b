// Forked by tests: loads the development identity of a data folder and tells its parent which one it got.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { loadDevelopmentIdentity } from '#provenance/identity/development-identity.ts';

const [, , dataDir] = process.argv;
assert(dataDir !== undefined);
const { signer } = await loadDevelopmentIdentity(dataDir);
process.send?.(new X509Certificate(signer.certificateChain[0] as Buffer).fingerprint256);
process.disconnect();
