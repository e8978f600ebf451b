import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { signWithIdentity } from '#provenance/authoring/sign-manifest.ts';
import { MAX_TIME_STAMP_BYTES, NO_TIME_STAMP } from '#provenance/authoring/time-stamps.ts';
import { dryRunManifest, judgeManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import type { ManifestRequest } from '#provenance/manifest-request.ts';
import { SIGNING_ALGORITHMS, type Signer } from '#provenance/signer.ts';
import { NO_STAPLES } from '#provenance/staples.ts';
import { judgeIdentity } from '../support/judges/identity-judges.ts';
import { collectSdkObjects } from '../support/manifests/collect-sdk-objects.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { requestWith, signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { defaultIdentity, testIdentity } from '../support/manifests/test-identity.ts';
import { startAuthority } from './time-stamp-authority.ts';

after(collectSdkObjects);

const never = new AbortController().signal;
const DAY_MS = 24 * 60 * 60 * 1000;
const leaf = { commonName: 'Example publisher', organization: 'Example News' };
const publisher = await testIdentity({ leaf });
const author = testAuthor({ publisher: publisher.signer });

/** One of each assertion that a request may state. */
const STATED: ManifestRequest['assertions'] = [
  { label: 'com.example.review', data: { ok: true } },
  { label: 'c2pa.asset-ref', data: { references: [{ reference: { uri: 'https://example.com/a' } }] } },
  { label: 'c2pa.metadata', data: { '@context': { exif: 'http://ns.adobe.com/exif/1.0/' }, 'exif:GPSLatitude': '1' } },
  { label: 'c2pa.soft-binding', data: { alg: 'com.example.mark', blocks: [{ scope: {}, value: 'QQ==' }] } },
  { label: 'c2pa.training-mining', data: { entries: { 'c2pa.ai_training': { use: 'notAllowed' } } } },
  { label: 'cawg.metadata', data: { '@context': { dc: 'http://purl.org/dc/elements/1.1/' }, 'dc:title': 'x' } },
  { label: 'cawg.training-mining', data: { entries: { 'cawg.ai_training': { use: 'notAllowed' } } } },
];

const PRESENTATION = { label: 'com.attestream.presentation', data: { playlists: [] } };
const BINDING = {
  label: 'c2pa.hash.data',
  data: { exclusions: [], name: 'x', alg: 'sha256', hash: new Array<number>(32).fill(1), pad: [] },
};

interface ShownIdentity {
  readonly signer_payload: {
    readonly referenced_assertions: readonly { readonly url: string }[];
    readonly role: string[];
  };
  readonly signature_info?: { readonly alg: string; readonly issuer: string };
}

async function identitiesIn(bytes: Uint8Array): Promise<ShownIdentity[]> {
  const { assertions } = await readManifest(bytes);
  return assertions.filter(({ label }) => label.startsWith('cawg.identity')).map(({ data }) => data as ShownIdentity);
}

describe("the publisher's identity assertion", () => {
  test('stands once in a manifest, and refers to the stated assertions and the hard binding', async () => {
    const { bytes } = await signWav(author, { assertions: STATED });
    const [identity, ...others] = await identitiesIn(bytes);
    assert.deepEqual(others, []);
    assert.deepEqual(identity?.signer_payload.role, ['cawg.publisher']);
    assert.deepEqual(
      identity.signer_payload.referenced_assertions.map(({ url }) => url.split('/').at(-1)),
      [...STATED.map(({ label }) => label), 'c2pa.hash.data'],
    );
    assert.equal(identity.signature_info?.issuer, 'Example News');
  });

  test('is valid to both official readers with every kind of key and certificates of any length', async () => {
    for (const [index, algorithm] of SIGNING_ALGORITHMS.entries()) {
      const own = await testIdentity({ algorithm, leaf, intermediate: index % 2 === 0 });
      const { bytes, manifest, measuredBytes } = await signWav(testAuthor({ publisher: own.signer }));
      assert.equal(manifest.length, measuredBytes, algorithm);
      const { native, wasm } = await judgeIdentity(bytes, 'audio/wav', own);
      // This release of the native reader ignores anchors of publishers (c2pa-rs#2599).
      const expected = { state: 'Valid', codes: ['cawg.identity.well-formed', 'signingCredential.untrusted'] };
      assert.deepEqual({ algorithm, ...native }, { algorithm, ...expected });
      assert.deepEqual(
        { algorithm, ...wasm },
        {
          algorithm,
          state: 'Valid',
          codes: ['cawg.x509.credential.trusted', 'cawg.x509.signature.validated', 'cawg.identity.well-formed'],
        },
      );
    }
  });

  test('refers to assertions whose labels begin like others', async () => {
    const labels = ['com.example.abc', 'com.example.ab', 'com.example.a', 'com.example.abcd'];
    const { bytes } = await signWav(author, { assertions: labels.map((label) => ({ label, data: {} })) });
    const [identity] = await identitiesIn(bytes);
    assert.equal(identity?.signer_payload.referenced_assertions.length, labels.length + 1);
  });

  test('leaves manifests without a publisher as they are', async () => {
    const { bytes } = await signWav(testAuthor());
    assert.deepEqual(await identitiesIn(bytes), []);
  });

  test('takes the planned size, whatever the assertions, of files and of publications', async () => {
    const label = fc.stringMatching(/^com\.example\.[a-z]{1,60}$/);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(label, { maxLength: 40 }),
        fc.string({ maxLength: 300, unit: 'grapheme' }),
        fc.boolean(),
        async (labels, title, isPublication) => {
          const assertions = labels.map((name) => ({ label: name, data: { title } }));
          const draft = await author.draft(requestWith({ assertions, title: `${title}.mp4` }), never);
          const late = isPublication ? [BINDING, PRESENTATION] : [BINDING];
          const measuredBytes = await draft.measure(late, never);
          const { manifest } = await draft.sign(late, never);
          assert.equal(manifest.length, measuredBytes);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('is made beside a time-stamp of the signature, in the planned size', async (t) => {
    const authority = await startAuthority();
    t.after(() => authority.close());
    const timeStamps = { urls: [authority.url], timeoutMs: 600_000, isRequired: true };
    const stamping = testAuthor({ publisher: publisher.signer, timeStamps });
    for (let round = 0; round < 2; round += 1) {
      const { bytes, manifest, measuredBytes } = await signWav(stamping, { assertions: STATED });
      assert.equal(manifest.length, measuredBytes);
      assert(measuredBytes < 20_000 + MAX_TIME_STAMP_BYTES);
      assert((await readManifest(bytes)).successCodes.includes('timeStamp.validated'));
      const { wasm } = await judgeIdentity(bytes, 'audio/wav', publisher);
      assert(wasm.codes.includes('cawg.x509.signature.validated'));
    }
  });

  test('is not made with a certificate that has expired', async () => {
    const [notBefore, notAfter] = [-2, -1].map((days) => new Date(Date.now() + days * DAY_MS)) as [Date, Date];
    const expired = await testIdentity({ leaf: { ...leaf, notBefore, notAfter } });
    const refused = testAuthor({ publisher: expired.signer }).draft(requestWith(), never);
    await assert.rejects(refused, { reason: 'IDENTITY_EXPIRED' });
  });

  test('fails the signature where the key of the publisher is away', async () => {
    const away = { ...publisher.signer, sign: () => Promise.reject(new Error('the key is in another place')) };
    await assert.rejects(signWav(testAuthor({ publisher: away })), { reason: 'SIGNATURE_FAILED' });
  });

  test('is judged with the manifest where an identity is checked', async () => {
    const signature = { signer: defaultIdentity.signer, timeStamps: null, staples: { current: NO_STAPLES } };
    const signed = async (publishing: Signer): Promise<Buffer> => {
      const definition = dryRunManifest({ assertions: STATED, actions: [] });
      const parts = { ...signature, publisher: publishing };
      return (await signWithIdentity(definition, parts, NO_TIME_STAMP, never)).manifest;
    };
    assert.deepEqual((await judgeManifest(await signed(publisher.signer), never)).problems, []);
    const other = { ...publisher.signer, sign: defaultIdentity.signer.sign };
    assert.deepEqual((await judgeManifest(await signed(other), never)).problems, [
      { reader: 'wasm', problem: 'cawg.x509.signature.mismatch' },
    ]);
  });

  test('does not verify where another key made its signature', async () => {
    const other = { ...publisher.signer, sign: defaultIdentity.signer.sign };
    const { bytes } = await signWav(testAuthor({ publisher: other }));
    const { native, wasm } = await judgeIdentity(bytes, 'audio/wav', publisher);
    assert(!native.codes.includes('cawg.identity.well-formed'));
    assert.deepEqual(wasm.codes, ['cawg.x509.credential.trusted', 'cawg.x509.signature.mismatch']);
  });
});
