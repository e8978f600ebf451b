import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { valueAt } from '#errors/assert.ts';
import type { SettingsOf } from '#provenance/identity/signers/device-key.ts';
import { withDeviceKey } from '#provenance/identity/signers/open-signer.ts';
import { p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { signerContract } from '../signer-contract.ts';
import {
  failure,
  identitiesOf,
  openWith,
  type ServiceAnswer,
  type ServiceRequest,
  signDigest,
  signMessage,
  startKeyService,
} from './key-service.ts';
import { keyServiceContract } from './key-service-contract.ts';
import { certifyServer } from './server-certificate.ts';

const TOKEN = 'token-of-the-signer';
const SIZES: Readonly<Record<string, number>> = { ES256: 64, ES384: 96, ES512: 132 };

const identities = await identitiesOf(SIGNING_ALGORITHMS);
const es256 = valueAt(identities, 'es256');
const tls = certifyServer();
const folder = temporaryFolder();
const tokenPath = join(folder, 'token');
writeFileSync(tokenPath, `${TOKEN}\n`);

/** The server of docs/signers.md: keys have the names of their algorithms. */
async function answer({ method, headers, body }: ServiceRequest): Promise<ServiceAnswer> {
  assert.equal(method, 'POST');
  if (headers.authorization !== `Bearer ${TOKEN}`) return { status: 401, body: `not ${headers.authorization}` };
  return sign(JSON.parse(body.toString()));
}

async function sign(
  request: { [field in 'operation' | 'key' | 'algorithm' | 'data' | 'digest']?: string },
): Promise<ServiceAnswer> {
  const { operation, key, algorithm = '', data, digest } = request;
  const identity = [...identities].find(([name]) => name === key)?.[1];
  if (identity === undefined) return { status: 404, body: {} };
  const { privateKey } = identity;
  if (operation === 'public_key') {
    return { status: 200, body: { public_key: createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) } };
  }
  if (algorithm === 'Ed25519') return signed(signMessage(privateKey, Buffer.from(data ?? '', 'base64')));
  const hash = `sha${algorithm.slice(2)}`;
  const padding = algorithm.startsWith('ES') ? null : algorithm.startsWith('PS') ? 'pss' : 'pkcs1';
  const signature = await signDigest(privateKey, hash, padding, Buffer.from(digest ?? '', 'base64'));
  return signed(padding === null ? p1363OfDer(signature, SIZES[algorithm] ?? 0) : signature);
}

function signed(signature: Buffer): ServiceAnswer {
  return { status: 200, body: { signature: signature.toString('base64') } };
}

const service = await startKeyService(answer, { tls: tls.server });

function settings(changed: Partial<SettingsOf<'http'>> = {}): SettingsOf<'http'> {
  return {
    type: 'http',
    url: `${service.url}/sign`,
    key: 'es256',
    token_path: tokenPath,
    ca_path: tls.caPath,
    ...changed,
  };
}

for (const [algorithm, identity] of identities) {
  signerContract(`${algorithm}, by HTTP`, () => openWith(settings({ key: algorithm }), identity));
}

keyServiceContract('a signer by HTTP', {
  service,
  open: (timeoutMs) => openWith(settings(), es256, timeoutMs),
  busy: { status: 429, body: '' },
  refused: { status: 403, body: `no right with ${TOKEN}` },
  missing: { status: 404, body: '' },
  foreign: signed(await es256.signer.sign(Buffer.from('something else'))),
  secrets: [TOKEN],
});

describe('a signer by HTTP', () => {
  test('reads the token again for each signature', async () => {
    const own = join(folder, 'own-token');
    writeFileSync(own, TOKEN);
    const signer = await openWith(settings({ token_path: own }), es256);
    writeFileSync(own, 'token-that-was-revoked');
    await assert.rejects(
      signer.sign(Buffer.alloc(1)),
      failure('SIGNER_ACCESS_REFUSED', [TOKEN, 'token-that-was-revoked']),
    );
    writeFileSync(own, TOKEN);
    await signer.sign(Buffer.alloc(1));
    rmSync(own);
    await assert.rejects(signer.sign(Buffer.alloc(1)), failure('SIGNER_CREDENTIAL_UNREADABLE'));
  });

  test('tells no password of its address', async () => {
    const url = service.url.replace('//', '//user:password-in-url@');
    await assert.rejects(
      openWith(settings({ url, key: 'none' }), es256),
      failure('SIGNER_KEY_MISSING', ['password-in-url']),
    );
    await (await openWith(settings({ url }), es256)).close();
  });

  test('refuses a server of another authority', async () => {
    const { caPath } = certifyServer();
    await assert.rejects(openWith(settings({ ca_path: caPath }), es256), failure('SIGNER_AWAY'));
  });

  test('refuses the key of another certificate at the start', async () => {
    const other = valueAt(await identitiesOf(['es256']), 'es256');
    await assert.rejects(openWith(settings(), other), failure('SIGNER_KEY_MISMATCH'));
  });

  test('proves itself by a client certificate', async () => {
    const mutual = await startKeyService(({ body }) => sign(JSON.parse(body.toString())), {
      tls: { ...tls.server, requestCert: true, rejectUnauthorized: true },
    });
    const { token_path: _, ...own } = settings({ url: mutual.url });
    await assert.rejects(openWith(own, es256), failure('SIGNER_AWAY'));
    const certified = { ...own, client_certificate_path: tls.certificatePath, client_key_path: tls.keyPath };
    await (await openWith(certified, es256)).sign(Buffer.alloc(1));
  });

  test('uses a Unix socket', async () => {
    const socketPath = join(folder, 'signer.sock');
    await startKeyService(answer, { socketPath });
    const signer = await openWith(
      { type: 'http', key: 'es256', socket_path: socketPath, token_path: tokenPath },
      es256,
    );
    await signer.sign(Buffer.alloc(1));
  });

  test('is away while nothing listens', async () => {
    const socketPath = join(folder, 'nobody.sock');
    await assert.rejects(
      openWith({ type: 'http', key: 'es256', socket_path: socketPath }, es256),
      failure('SIGNER_AWAY'),
    );
  });

  test('shows the public key', async () => {
    for (const [algorithm, { privateKey }] of identities) {
      const shown = await withDeviceKey(settings({ key: algorithm }), folder, async ({ publicKey }) => publicKey);
      assert(shown.equals(createPublicKey(privateKey)));
    }
  });
});
