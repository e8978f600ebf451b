import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  Builder,
  CallbackCredentialHolder,
  CallbackSigner,
  IdentityAssertionBuilder,
  IdentityAssertionSigner,
  Reader,
} from '@contentauth/c2pa-node';
import * as cborg from 'cborg';
import { zeroSignature } from '#provenance/authoring/sign-manifest.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { identitySettings, NO_PUBLISHERS, readerSettings, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { collectSdkObjects } from '../support/manifests/collect-sdk-objects.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { defaultIdentity } from '../support/manifests/test-identity.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Aggregators of identities are named by addresses (did:web), which official readers ask for their keys.

const home = temporaryFolder();
const issuerKey = generateKeyPairSync('ed25519').privateKey;
let server: Server;
let connections = 0;
let file: Buffer;
before(async () => {
  server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
  const { port } = server.address() as { port: number };
  file = await signAggregated(`did:web:localhost%3A${port}`);
});
after(() => server.close());
after(collectSdkObjects);

/** Signs a file with an identity assertion that an aggregator confirms, as others make it. */
async function signAggregated(issuer: string): Promise<Buffer> {
  const encode = (value: unknown): Uint8Array => cborg.encode(value);
  const confirm = async (payload: object): Promise<Buffer> => {
    const c2paAsset = JSON.parse(JSON.stringify(payload), (_key, value: unknown) =>
      (value as { type?: string } | null)?.type === 'Buffer'
        ? Buffer.from((value as { data: number[] }).data).toString('base64')
        : value,
    ) as object;
    const credential = {
      '@context': ['https://www.w3.org/ns/credentials/v2', 'https://cawg.io/identity/1.1/ica/context/'],
      type: ['VerifiableCredential', 'IdentityClaimsAggregationCredential'],
      issuer,
      validFrom: '2026-01-01T00:00:00Z',
      credentialSubject: {
        verifiedIdentities: [
          {
            type: 'cawg.affiliation',
            name: 'Example News',
            verifiedAt: '2026-01-01T00:00:00Z',
            provider: { id: 'https://example.com', name: 'Example' },
          },
        ],
        c2paAsset,
      },
    };
    const headers = encode(
      new Map<number, unknown>([
        [1, -8],
        [3, 'application/vc'],
      ]),
    );
    const body = new Uint8Array(Buffer.from(JSON.stringify(credential)));
    const signature = new Uint8Array(sign(null, encode(['Signature1', headers, new Uint8Array(0), body]), issuerKey));
    return Buffer.from(encode(new cborg.Tagged(18, [headers, new Map(), body, signature])));
  };
  const holder = CallbackCredentialHolder.newCallbackCredentialHolder(
    4000,
    'cawg.identity_claims_aggregation',
    confirm as never,
  );
  const { signer } = defaultIdentity;
  const claim = CallbackSigner.newSigner(zeroSignature(signer).call, (data: Buffer) => signer.sign(data));
  const identitySigner = IdentityAssertionSigner.new(claim.getHandle());
  identitySigner.addIdentityAssertion(await IdentityAssertionBuilder.identityBuilderForCredentialHolder(holder));
  const builder = Builder.withJson(
    { title: 'sound', claim_generator_info: [{ name: 'test', version: '1' }] } as never,
    { verify: { verify_after_sign: false } },
  );
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  const output = { buffer: null as Buffer | null };
  await builder.signAsync(identitySigner, { buffer: smallWav(), mimeType: 'audio/wav' }, output);
  return output.buffer as Buffer;
}

describe('an identity that an aggregator confirms', () => {
  test('is shown with its issuer as not verified, and leaves the verdict on the manifest', async () => {
    const folder = writeFiles(join(home, 'file'), { 'sound.wav': file });
    const anchors = [join(writeFiles(join(home, 'lists'), { 'own.pem': root() }), 'own.pem')];
    const input = { type: 'local_file_path', path: join(folder, 'sound.wav') } as const;
    connections = 0;
    const { verification } = await verifyInput(input, folder, { trust: { anchors }, params: { report: 'crjson' } });
    assert.equal(connections, 0, 'nothing that a file names is asked');
    assert.equal(verification.state, 'trusted');
    const [identity] = verification.manifests[0]?.identity_assertions ?? [];
    assert.deepEqual(
      [identity?.state, identity?.kind, identity?.name],
      ['unverified', 'claims_aggregation', undefined],
    );
    assert.match(identity?.issuer ?? '', /^did:web:/);
    assert.match(verification.summary, /states an identity by "did:web:[^"]+", which was not verified/);
    assert.doesNotMatch(verification.summary, /Example News/);
  });

  test('has the native reader ask its issuer, where nothing tells it not to', async () => {
    connections = 0;
    await Reader.fromAsset({ buffer: file, mimeType: 'audio/wav' }, { verify: { ocsp_fetch: false } });
    assert(connections > 0);
  });

  test('has the WASM reader ask its issuer, where nothing tells it not to', async (t) => {
    const asked = t.mock.method(globalThis, 'fetch', () => Promise.reject(new Error('no network')));
    const other = await signAggregated('did:web:aggregator.example');
    const WasmReader = await wasmReader();
    for (const settings of [identitySettings(NO_PUBLISHERS), readerSettings(null)]) {
      await WasmReader.fromBytes('audio/wav', other, settings);
      assert.equal(asked.mock.callCount(), 0);
    }
    await WasmReader.fromBytes('audio/wav', other, '{}');
    assert(asked.mock.callCount() > 0);
  });
});

function root(): Buffer {
  return Buffer.from(pemOf(defaultIdentity.chain.at(-1) as Buffer));
}
