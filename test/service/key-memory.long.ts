import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import { signDigest, startKeyService } from '../provenance/signers/key-service.ts';
import { makeToken } from '../provenance/signers/softhsm.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { formsOfKey, holdsInMemory } from '../support/memory-search.ts';
import { commandOf, descendantsOf, processText } from '../support/process-tree.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertSignedBy, IdentityConfiguration, submitSounds } from './device-service.ts';

const folder = temporaryFolder();
const [file, device, server, vault] = [
  await testIdentity(),
  await testIdentity(),
  await testIdentity(),
  await testIdentity(),
];
const token = makeToken({ key: device.privateKey });
const tokenPath = join(folder, 'token');
writeFileSync(tokenPath, 'token');

/** Settles when the servers may sign. */
let mayAnswer = Promise.resolve();

async function signatureOf(key: KeyObject, digest: string): Promise<Buffer> {
  await mayAnswer;
  return p1363OfDer(await signDigest(key, 'sha256', null, Buffer.from(digest, 'base64')), 64);
}

// The process of this test holds the keys of both.
const socketPath = join(folder, 'keys.sock');
const keys = await startKeyService(
  async ({ body }) => {
    const signature = await signatureOf(server.privateKey, JSON.parse(`${body}`).digest);
    return { status: 200, body: { signature: signature.toString('base64') } };
  },
  { socketPath },
);
const vaultKeys = await startKeyService(async ({ method, body }) => {
  const public_key = createPublicKey(vault.privateKey).export({ type: 'spki', format: 'pem' });
  if (method === 'GET') return { status: 200, body: { data: { latest_version: 1, keys: { 1: { public_key } } } } };
  const signature = await signatureOf(vault.privateKey, JSON.parse(`${body}`).input);
  return { status: 200, body: { data: { signature: `vault:v1:${signature.toString('base64url')}` } } };
});

const IDENTITIES = {
  file: { identity: file },
  device: { identity: device, signer: token.settings('key') },
  server: { identity: server, signer: { type: 'http', socket_path: socketPath, key: 'k' } },
  vault: { identity: vault, signer: { type: 'vault', url: vaultKeys.url, key: 'k', token_path: tokenPath } },
};

/** Returns the processes of a service that hold each key. */
function holdersIn({ pid }: RunningService): Readonly<Record<string, readonly number[]>> {
  const forms = new Map(
    Object.entries(IDENTITIES).map(([name, { identity }]) => [name, formsOfKey(identity.privateKey)]),
  );
  const suspects = [pid, ...descendantsOf(pid)].filter((each) => holdsInMemory(each, [...forms.values()].flat()));
  const holders = Array.from(forms, ([name, own]) => [name, suspects.filter((each) => holdsInMemory(each, own))]);
  return Object.fromEntries(holders);
}

function isSignerOfToken(pid: number): boolean {
  return processText(pid, 'maps').includes('libsofthsm2');
}

test('keys of servers are in no process of a service that signs, and those of files and tokens in their signers alone', async () => {
  await using service = await new IdentityConfiguration(IDENTITIES).start();
  const { promise, resolve } = Promise.withResolvers<void>();
  mayAnswer = promise;
  const askedBefore = [keys, vaultKeys].map(({ requests }) => requests.length);
  const jobs = await Promise.all(
    Object.entries(IDENTITIES).map(async ([name, { identity }]) => ({
      identity,
      jobId: await submitSounds(service, name, 10),
    })),
  );
  await until(() => [keys, vaultKeys].every(({ requests }, index) => requests.length > (askedBefore[index] ?? 0)));
  const { file: ofFile = [], device: ofToken = [], ...others } = holdersIn(service);
  assert.deepEqual(others, { server: [], vault: [] });
  assert.deepEqual(
    ofFile.map((pid) => commandOf(pid).includes('run-signer')),
    [true],
  );
  assert(ofToken.every(isSignerOfToken));
  resolve();
  for (const { jobId, identity } of jobs) await assertSignedBy(service, jobId, identity);
});
