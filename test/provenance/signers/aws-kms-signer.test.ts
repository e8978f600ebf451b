import assert from 'node:assert/strict';
import { createHash, createHmac, createPublicKey } from 'node:crypto';
import { describe, test } from 'node:test';
import { valueAt } from '#errors/assert.ts';
import type { SettingsOf } from '#provenance/identity/signers/device-key.ts';
import { withDeviceKey } from '#provenance/identity/signers/open-signer.ts';
import { testIdentity } from '../../support/manifests/test-identity.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { signerContract } from '../signer-contract.ts';
import {
  failure,
  identitiesOf,
  openWith,
  type ServiceAnswer,
  type ServiceRequest,
  signDigest,
  startKeyService,
} from './key-service.ts';
import { keyServiceContract } from './key-service-contract.ts';

const ACCESS_KEY = 'AKIATESTSIGNER';
const SECRET = 'secret-access-key-of-the-tests';
Object.assign(process.env, { AWS_ACCESS_KEY_ID: ACCESS_KEY, AWS_SECRET_ACCESS_KEY: SECRET });

const identities = await identitiesOf(['es256', 'es384', 'es512', 'ps256', 'ps384', 'ps512']);
const es256 = valueAt(identities, 'es256');

function problem(name: string, status = 400): ServiceAnswer {
  const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-errortype': name };
  return { status, body: { __type: name, message: `no ${SECRET}` }, headers };
}

/** AWS KMS as its API reference describes it. Keys have the names of their algorithms. */
async function answer(request: ServiceRequest): Promise<ServiceAnswer> {
  if (!isAuthentic(request)) return problem('InvalidSignatureException');
  const { KeyId, Message, MessageType, SigningAlgorithm } = JSON.parse(request.body.toString());
  const identity = [...identities].find(([name]) => name === KeyId)?.[1];
  if (identity === undefined) return problem('NotFoundException');
  const { privateKey } = identity;
  if (request.headers['x-amz-target'] === 'TrentService.GetPublicKey') {
    const der = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
    return ok({ KeyId, PublicKey: der.toString('base64') });
  }
  assert.equal(request.headers['x-amz-target'], 'TrentService.Sign');
  assert.equal(MessageType, 'DIGEST');
  const [, family, bits] = /^(ECDSA|RSASSA_PSS|RSASSA_PKCS1_V1_5)_SHA_(\d{3})$/.exec(SigningAlgorithm) ?? [];
  const padding = family === 'ECDSA' ? null : family === 'RSASSA_PSS' ? 'pss' : 'pkcs1';
  const signature = await signDigest(privateKey, `sha${bits}`, padding, Buffer.from(Message, 'base64'));
  return ok({ KeyId, Signature: signature.toString('base64'), SigningAlgorithm });
}

function ok(body: object): ServiceAnswer {
  return { status: 200, body, headers: { 'content-type': 'application/x-amz-json-1.1' } };
}

/** Checks a request as AWS documents it: Signature Version 4. */
function isAuthentic({ method, path, headers, body }: ServiceRequest): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/kms\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, accessKey, date = '', region = '', names = '', signature] = pattern.exec(`${headers.authorization}`) ?? [];
  const signed = names.split(';').map((name) => `${name}:${`${headers[name]}`.trim()}\n`);
  const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
  const canonical = [method, path, '', signed.join(''), names, sha256(body)].join('\n');
  const toSign = ['AWS4-HMAC-SHA256', headers['x-amz-date'], `${date}/${region}/kms/aws4_request`, sha256(canonical)];
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();
  const key = [date, region, 'kms', 'aws4_request'].reduce<string | Buffer>(
    (last, part) => hmac(last, part),
    `AWS4${SECRET}`,
  );
  return accessKey === ACCESS_KEY && hmac(key, toSign.join('\n')).toString('hex') === signature;
}

const service = await startKeyService(answer);

function settings(changed: Partial<SettingsOf<'aws_kms'>> = {}): SettingsOf<'aws_kms'> {
  return { type: 'aws_kms', key_id: 'es256', region: 'eu-central-1', endpoint_url: service.url, ...changed };
}

for (const [algorithm, identity] of identities) {
  signerContract(`${algorithm}, by AWS KMS`, () => openWith(settings({ key_id: algorithm }), identity));
}

keyServiceContract('a signer by AWS KMS', {
  service,
  open: (timeoutMs) => openWith(settings(), es256, timeoutMs),
  busy: problem('ThrottlingException'),
  refused: problem('AccessDeniedException'),
  missing: problem('NotFoundException'),
  foreign: ok({ Signature: (await signDigest(es256.privateKey, 'sha256', null, Buffer.alloc(32))).toString('base64') }),
  secrets: [SECRET, ACCESS_KEY],
});

describe('a signer by AWS KMS', () => {
  test('refuses Ed25519, whose messages are too short there', async () => {
    const identity = await testIdentity({ algorithm: 'ed25519' });
    const before = service.requests.length;
    await assert.rejects(openWith(settings(), identity), failure('SIGNER_ALGORITHM_UNSUPPORTED'));
    assert.equal(service.requests.length, before);
  });

  test('is refused with credentials that were revoked', async () => {
    process.env['AWS_SECRET_ACCESS_KEY'] = 'another-secret';
    try {
      await assert.rejects(openWith(settings(), es256), failure('SIGNER_ACCESS_REFUSED', ['another-secret']));
    } finally {
      process.env['AWS_SECRET_ACCESS_KEY'] = SECRET;
    }
  });

  test('is away where the chain finds no credentials', async () => {
    const { AWS_ACCESS_KEY_ID: accessKey } = process.env;
    Object.assign(process.env, { AWS_EC2_METADATA_DISABLED: 'true' });
    delete process.env['AWS_ACCESS_KEY_ID'];
    try {
      await assert.rejects(openWith(settings(), es256), failure('SIGNER_ACCESS_REFUSED'));
    } finally {
      process.env['AWS_ACCESS_KEY_ID'] = accessKey;
    }
  });

  test('refuses the key of another certificate at the start', async () => {
    const other = valueAt(await identitiesOf(['es256']), 'es256');
    await assert.rejects(openWith(settings(), other), failure('SIGNER_KEY_MISMATCH'));
  });

  test('shows the public key', async () => {
    const shown = await withDeviceKey(settings(), temporaryFolder(), async ({ publicKey }) => publicKey);
    assert(shown.equals(createPublicKey(es256.privateKey)));
  });
});
