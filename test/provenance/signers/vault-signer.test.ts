import assert from 'node:assert/strict';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, test } from 'node:test';
import { itemAt, valueAt } from '#errors/assert.ts';
import type { SettingsOf } from '#provenance/identity/signers/device-key.ts';
import { withDeviceKey } from '#provenance/identity/signers/open-signer.ts';
import { p1363OfDer } from '#provenance/identity/signers/signature-forms.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { testKey } from '../../support/manifests/test-identity.ts';
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

const NAMESPACE = 'newsrooms/north';
const ROLE_ID = 'role-of-the-signer';
const SECRET_ID = 'secret-of-the-signer';

const identities = await identitiesOf(SIGNING_ALGORITHMS);
const es256 = valueAt(identities, 'es256');
const folder = temporaryFolder();
const [tokenPath, roleIdPath, secretIdPath] = ['token', 'role-id', 'secret-id'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];

/** The transit engine as https://developer.hashicorp.com/vault/api-docs/secret/transit describes it. */
const vault = {
  tokens: new Set<string>(),
  /** The lease of tokens of AppRoles, in seconds. */
  leaseSeconds: 3600,
  logins: 0,
  /** The versions of each key, the first has number 1. */
  keys: new Map<string, KeyObject[]>(),
};

const REFUSED: ServiceAnswer = { status: 403, body: { errors: ['permission denied'] } };
const MISSING: ServiceAnswer = { status: 404, body: { errors: [] } };

function answer({ method, path, headers, body }: ServiceRequest): Promise<ServiceAnswer> | ServiceAnswer {
  if (headers['x-vault-namespace'] !== NAMESPACE) return MISSING;
  if (path === '/v1/auth/approle/login') return logIn(JSON.parse(body.toString()));
  if (!vault.tokens.has(`${headers['x-vault-token']}`)) return REFUSED;
  const [, key = ''] = /^\/v1\/transit\/(?:keys|sign)\/([^/]+)/.exec(path) ?? [];
  const versions = vault.keys.get(key);
  if (versions === undefined) return MISSING;
  if (method === 'GET' && path === `/v1/transit/keys/${key}`)
    return { status: 200, body: { data: describeKey(versions) } };
  const [, , hash = null] = new RegExp(`^/v1/transit/sign/${key}(/sha2-(\\d{3}))?$`).exec(path) ?? [];
  return sign(versions, hash, JSON.parse(body.toString()));
}

function logIn({ role_id, secret_id }: { role_id?: string; secret_id?: string }): ServiceAnswer {
  if (role_id !== ROLE_ID || secret_id !== SECRET_ID)
    return { status: 400, body: { errors: [`invalid ${secret_id}`] } };
  vault.logins += 1;
  const token = `approle-token-${vault.logins}`;
  vault.tokens.add(token);
  return { status: 200, body: { auth: { client_token: token, lease_duration: vault.leaseSeconds } } };
}

function describeKey(versions: readonly KeyObject[]): object {
  const shown = versions.map((privateKey, index) => {
    const publicKey = createPublicKey(privateKey);
    const bare = () => Buffer.from(`${publicKey.export({ format: 'jwk' }).x}`, 'base64url').toString('base64');
    const isEdwards = privateKey.asymmetricKeyType === 'ed25519';
    return [index + 1, { public_key: isEdwards ? bare() : publicKey.export({ type: 'spki', format: 'pem' }) }];
  });
  return { latest_version: versions.length, keys: Object.fromEntries(shown) };
}

interface SignRequest {
  readonly input: string;
  readonly key_version?: number;
  readonly prehashed?: boolean;
  readonly marshaling_algorithm?: string;
  readonly signature_algorithm?: string;
  readonly salt_length?: string;
}

async function sign(versions: readonly KeyObject[], bits: string | null, request: SignRequest): Promise<ServiceAnswer> {
  const version = request.key_version ?? versions.length;
  const key = itemAt(versions, version - 1);
  const input = Buffer.from(request.input, 'base64');
  const signature = await signatureOf(key, input, bits, request);
  return { status: 200, body: { data: { signature: `vault:v${version}:${signature}`, key_version: version } } };
}

async function signatureOf(key: KeyObject, input: Buffer, bits: string | null, request: SignRequest): Promise<string> {
  if (key.asymmetricKeyType === 'ed25519') return signMessage(key, input).toString('base64');
  assert.equal(request.prehashed, true);
  const hash = `sha${bits}`;
  if (key.asymmetricKeyType === 'ec') {
    assert.equal(request.marshaling_algorithm, 'jws');
    const size = { 'P-256': 64, 'P-384': 96, 'P-521': 132 }[`${key.export({ format: 'jwk' }).crv}`] ?? 0;
    return p1363OfDer(await signDigest(key, hash, null, input), size).toString('base64url');
  }
  if (request.signature_algorithm === 'pss') assert.equal(request.salt_length, 'hash');
  const padding = request.signature_algorithm === 'pss' ? 'pss' : 'pkcs1';
  return (await signDigest(key, hash, padding, input)).toString('base64');
}

const service = await startKeyService(answer);

function settings(changed: Partial<SettingsOf<'vault'>> = {}): SettingsOf<'vault'> {
  return {
    type: 'vault',
    url: service.url,
    namespace: NAMESPACE,
    mount: 'transit',
    key: 'es256',
    token_path: tokenPath,
    ...changed,
  };
}

function roleSettings(): SettingsOf<'vault'> {
  const { token_path: _, ...rest } = settings();
  return { ...rest, role_id_path: roleIdPath, secret_id_path: secretIdPath };
}

beforeEach(() => {
  vault.tokens = new Set(['hvs.token-of-the-signer']);
  vault.keys = new Map([...identities].map(([algorithm, { privateKey }]) => [algorithm, [privateKey]]));
  vault.leaseSeconds = 3600;
  vault.logins = 0;
  writeFileSync(tokenPath, 'hvs.token-of-the-signer\n');
  writeFileSync(roleIdPath, ROLE_ID);
  writeFileSync(secretIdPath, SECRET_ID);
});

for (const [algorithm, identity] of identities) {
  signerContract(`${algorithm}, by Vault`, () => openWith(settings({ key: algorithm }), identity));
}

keyServiceContract('a signer by Vault', {
  service,
  open: (timeoutMs) => openWith(settings(), es256, timeoutMs),
  // A sealed Vault.
  busy: { status: 503, body: { errors: ['Vault is sealed'] } },
  refused: REFUSED,
  missing: MISSING,
  foreign: { status: 200, body: { data: { signature: `vault:v1:${Buffer.alloc(64, 1).toString('base64url')}` } } },
  secrets: ['hvs.token-of-the-signer'],
});

describe('a signer by Vault', () => {
  test('uses the token that is in the file when the first one has ended', async () => {
    const signer = await openWith(settings(), es256);
    vault.tokens = new Set(['hvs.another']);
    await assert.rejects(signer.sign(Buffer.alloc(1)), failure('SIGNER_ACCESS_REFUSED', ['hvs.']));
    writeFileSync(tokenPath, 'hvs.another');
    await signer.sign(Buffer.alloc(1));
  });

  test('logs in once with an AppRole, and again when its token has ended', async () => {
    const signer = await openWith(roleSettings(), es256);
    await Promise.all([1, 2, 3].map((byte) => signer.sign(Buffer.from([byte]))));
    assert.equal(vault.logins, 1);
    vault.tokens.clear();
    await Promise.all([1, 2, 3].map((byte) => signer.sign(Buffer.from([byte]))));
    assert.equal(vault.logins, 2);
  });

  test('logs in again before the lease of a token ends', async () => {
    vault.leaseSeconds = 0.001;
    const signer = await openWith(roleSettings(), es256);
    const { logins } = vault;
    await new Promise((resolve) => setTimeout(resolve, 10));
    await signer.sign(Buffer.alloc(1));
    assert(vault.logins > logins);
  });

  test('names a secret id that was revoked, without telling it', async () => {
    writeFileSync(secretIdPath, 'revoked-secret');
    await assert.rejects(
      openWith(roleSettings(), es256),
      failure('SIGNER_ACCESS_REFUSED', ['revoked-secret', ROLE_ID]),
    );
  });

  test('signs with the certified version of a key that was rotated', async () => {
    vault.keys.get('es256')?.push(testKey('es256'));
    const signer = await openWith(settings(), es256);
    vault.keys.get('es256')?.push(testKey('es256'));
    await signer.sign(Buffer.alloc(1));
  });

  test('refuses the key of another certificate at the start', async () => {
    const other = valueAt(await identitiesOf(['es256']), 'es256');
    await assert.rejects(openWith(settings(), other), failure('SIGNER_KEY_MISMATCH'));
  });

  test('shows the newest public key', async () => {
    for (const [algorithm, { privateKey }] of identities) {
      const shown = await withDeviceKey(settings({ key: algorithm }), folder, async ({ publicKey }) => publicKey);
      assert(shown.equals(createPublicKey(privateKey)));
    }
  });
});
