import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import { testIdentity, writeIdentity } from '../../support/manifests/test-identity.ts';
import { formsOfKey, holdsInMemory } from '../../support/memory-search.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { signDigest, startKeyService } from './key-service.ts';

const PROGRAM = fileURLToPath(new URL('signing-program.ts', import.meta.url));

const folder = temporaryFolder();
const identity = await testIdentity();
const { privateKeyPath } = writeIdentity(folder, identity);
const [leaf] = identity.chain;

const socketPath = join(folder, 'keys.sock');
const tokenPath = join(folder, 'token');
writeFileSync(tokenPath, 'token');

async function signatureOf(digest: string): Promise<Buffer> {
  return p1363OfDer(await signDigest(identity.privateKey, 'sha256', null, Buffer.from(digest, 'base64')), 64);
}

// The process of this test holds the key.
const server = await startKeyService(
  async ({ body }) => {
    const signature = await signatureOf(JSON.parse(body.toString()).digest);
    return { status: 200, body: { signature: signature.toString('base64') } };
  },
  { socketPath },
);
const vault = await startKeyService(async ({ method, body }) => {
  const public_key = createPublicKey(identity.privateKey).export({ type: 'spki', format: 'pem' });
  if (method === 'GET') return { status: 200, body: { data: { latest_version: 1, keys: { 1: { public_key } } } } };
  const signature = await signatureOf(JSON.parse(body.toString()).input);
  return { status: 200, body: { data: { signature: `vault:v1:${signature.toString('base64url')}` } } };
});

/** Starts a signer, searches its memory while it signs, and ends it. */
async function isKeyInSigner(settings: object): Promise<boolean> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings), `${leaf?.toString('base64')}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await once(child.stdout, 'data');
    return holdsInMemory(child.pid ?? 0, formsOfKey(identity.privateKey));
  } finally {
    child.kill('SIGKILL');
  }
}

describe('the private key', () => {
  test('is in the memory of a signer that reads it from a file', async () => {
    assert.equal(await isKeyInSigner({ type: 'pem', private_key_path: privateKeyPath }), true);
  });

  for (const [device, service, settings] of [
    ['a server', server, { type: 'http', socket_path: socketPath, key: 'k' }],
    ['Vault', vault, { type: 'vault', url: vault.url, mount: 'transit', key: 'k', token_path: tokenPath }],
  ] as const) {
    test(`is not in the memory of a signer that asks ${device}`, async () => {
      assert.equal(await isKeyInSigner(settings), false);
      assert(service.requests.length > 0);
    });
  }
});
