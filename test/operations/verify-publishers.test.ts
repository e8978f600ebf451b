import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { Verification } from '#contract/verification.ts';
import { identityAssertionOf } from '#provenance/authoring/identity-assertion.ts';
import { zeroSignature } from '#provenance/authoring/sign-manifest.ts';
import { withIdentities } from '#provenance/describe-identities.ts';
import { describeReport } from '#provenance/describe-report.ts';
import { dryRunManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { identitySettings, wasmReader } from '#provenance/reading/wasm-reader.ts';
import { type SignerPayload, signManifest } from '#provenance/sdk/sdk.ts';
import type { TrustSettings } from '#provenance/trust-store.ts';
import type { ManifestReport } from '#provenance/validation-report.ts';
import { packageInput } from '../packaging/package-input.ts';
import { collectSdkObjects } from '../support/manifests/collect-sdk-objects.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { defaultIdentity, type TestIdentity, testIdentity } from '../support/manifests/test-identity.ts';
import { makeFilm } from '../support/media/make-film.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

after(collectSdkObjects);

const home = temporaryFolder();
const DAY_MS = 24 * 60 * 60 * 1000;
let count = 0;

const leaf = { commonName: 'Example publisher', organization: 'Example News' };
const publisher = await testIdentity({ leaf, intermediate: true });
const { bytes, manifest } = await signWav(testAuthor({ publisher: publisher.signer }), {
  assertions: [{ label: 'com.example.review', data: { ok: true } }],
});

const leafOf = ({ chain }: TestIdentity): Buffer => chain[0] as Buffer;
const rootOf = ({ chain }: TestIdentity): Buffer => Buffer.from(pemOf(chain.at(-1) as Buffer));

const lists = writeFiles(join(home, 'lists'), {
  'signers.pem': rootOf(defaultIdentity),
  'publishers.pem': rootOf(publisher),
  'others.pem': rootOf(await testIdentity()),
  'IPTC.pem': Buffer.from(`A publisher\n${pemOf(leafOf(publisher))}`),
  'digests.txt': Buffer.from(`# A comment\r\n${hash('sha256', leafOf(publisher), 'base64')}\r\n`),
  'other digests.txt': Buffer.from(`${hash('sha256', leafOf(defaultIdentity), 'base64')}\n`),
});
const list = (name: string): string[] => [join(lists, name)];

async function verified(file: Uint8Array, trust: TrustSettings, name = 'file'): Promise<Verification> {
  const folder = writeFiles(join(home, String(count++)), { [name]: file });
  return (await verifyInput({ type: 'local_file_path', path: join(folder, name) }, folder, { trust })).verification;
}

function identitiesOf({ manifests }: Verification) {
  return manifests[0]?.identity_assertions ?? [];
}

describe('a publisher', () => {
  test('on a list of publishers is named beside the signer', async () => {
    const trust = { anchors: list('signers.pem'), publisher_anchors: list('publishers.pem') };
    const verification = await verified(bytes, trust);
    assert.equal(verification.state, 'trusted');
    assert.deepEqual(identitiesOf(verification), [
      {
        state: 'trusted',
        kind: 'x509',
        roles: ['cawg.publisher'],
        name: 'Example publisher',
        organization: 'Example News',
        trust_list: 'publishers',
      },
    ]);
    assert.equal(
      verification.summary,
      'Unchanged. Published by "Example News", who is on publishers, and signed by "Attestream tests", who is on signers. There is no time-stamp and no revocation data.',
    );
  });

  test('is trusted apart from the signer, each by lists of their own', async () => {
    const apart = await verified(bytes, { publisher_anchors: list('publishers.pem') });
    assert.deepEqual([apart.state, identitiesOf(apart)[0]?.state], ['valid', 'trusted']);
    assert.match(apart.summary, /Published by "Example News", who is on publishers, and signed by .* on no trust list/);
    const swapped = { anchors: list('publishers.pem'), publisher_anchors: list('signers.pem') };
    const neither = await verified(bytes, swapped);
    assert.deepEqual([neither.state, identitiesOf(neither)[0]?.state], ['valid', 'valid']);
  });

  test('on no list leaves the signer trusted, and is not said to have published it', async () => {
    const verification = await verified(bytes, { anchors: list('signers.pem'), publisher_anchors: list('others.pem') });
    assert.deepEqual([verification.state, identitiesOf(verification)[0]?.state], ['trusted', 'valid']);
    assert.doesNotMatch(verification.summary, /published by/i);
    assert.match(verification.summary, /names "Example News" as its publisher, who is on no list of publishers/);
    assert(verification.codes.some(({ code }) => code === 'cawg.x509.credential.untrusted'));
  });

  test('is trusted by the list of allowed certificates that has its own, in PEM or by its digest', async () => {
    for (const name of ['IPTC.pem', 'digests.txt']) {
      const verification = await verified(bytes, { allowed: list(name) });
      const [identity] = identitiesOf(verification);
      assert.equal(verification.state, 'valid', 'a list of publishers is none of signers');
      assert.deepEqual([identity?.state, identity?.trust_list], ['trusted', name.replace(/\.pem$/, '')]);
    }
    const several = await verified(bytes, { allowed: [...list('other digests.txt'), ...list('digests.txt')] });
    assert.equal(identitiesOf(several)[0]?.state, 'trusted');
    const other = await verified(bytes, { allowed: list('other digests.txt') });
    assert.equal(identitiesOf(other)[0]?.state, 'valid');
  });

  test('is verified in a sidecar, and recorded as an ingredient by the state of its manifest', async () => {
    const folder = writeFiles(join(home, String(count++)), { 'film.wav': bytes, 'film.c2pa': Buffer.from(manifest) });
    const source = { type: 'local_file_path', path: join(folder, 'film.c2pa') } as const;
    const params = { sidecars: [{ input_index: 0, source }] };
    const trust = { publisher_anchors: list('publishers.pem') };
    const input = { type: 'local_file_path', path: join(folder, 'film.wav') } as const;
    const { verification } = await verifyInput(input, folder, { trust, params });
    assert.equal(identitiesOf(verification)[0]?.kind, 'x509');

    const path = join(folder, 'film.wav');
    const origin = { kind: 'file', path, title: 'film.wav', mediaType: 'audio/wav' } as const;
    const again = await signWav(testAuthor({ publisher: publisher.signer }), { origin });
    const outer = await verified(again.bytes, trust);
    assert.deepEqual(
      outer.manifests.map(({ identity_assertions: [identity] = [] }) => identity?.state),
      ['trusted', 'trusted'],
    );
    assert.equal(outer.manifests[0]?.ingredients[0]?.state, 'valid');
  });

  test('of a file that was changed is nobody', async () => {
    const changed = Buffer.from(bytes);
    changed[changed.length - 1] = (changed.at(-1) as number) ^ 1;
    const damaged = Buffer.from(bytes);
    damaged[damaged.indexOf('cawg.publisher') + 3] = 0x78;
    for (const file of [changed, damaged]) {
      const verification = await verified(file, { publisher_anchors: list('publishers.pem') });
      assert.equal(verification.state, 'invalid');
      assert.doesNotMatch(verification.summary, /Example News/);
      for (const { state, organization } of identitiesOf(verification)) {
        assert.deepEqual([state, organization], ['unverified', undefined]);
      }
    }
  });
});

describe('the publisher of a publication', () => {
  const trust = { anchors: list('signers.pem'), publisher_anchors: list('publishers.pem') };
  let output = '';
  before(async () => {
    const film = join(home, 'film');
    mkdirSync(film);
    makeFilm(film);
    const author = testAuthor({ publisher: publisher.signer });
    output = (await packageInput(film, {}, { sign: true, author })).outputPath;
  });

  async function verifiedFolder(): Promise<Verification> {
    return (await verifyInput({ type: 'local_folder_path', path: output }, home, { trust })).verification;
  }

  test('vouches in every init segment for the presentation too', async () => {
    const names = readdirSync(output, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('init.mp4'),
    );
    assert(names.length > 2);
    for (const name of names) {
      const { assertions } = await readManifest(readFileSync(join(output, name)), 'video/mp4');
      const identities = assertions.filter(({ label }) => label === 'cawg.identity');
      assert.match(JSON.stringify(identities), /c2pa\.hash\.bmff.*com\.attestream\.presentation/, name);
      assert.equal(identities.length, 1, name);
    }
  });

  test('is named by its lists, and no more once a fragment was changed', async () => {
    const { state, summary } = await verifiedFolder();
    assert.equal(state, 'trusted');
    assert.match(summary, /Published by "Example News", who is on publishers, and signed by "Attestream tests"/);
    const path = join(output, 'video/h264_180p');
    const fragment = join(path, readdirSync(path).find((name) => name.endsWith('.m4s')) ?? '');
    const bytes = readFileSync(fragment);
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    writeFileSync(fragment, bytes);
    const changed = await verifiedFolder();
    assert.equal(changed.state, 'invalid');
    assert.doesNotMatch(changed.summary, /Example News/);
    assert.deepEqual(
      identitiesOf(changed).map((identity) => [identity.state, identity.organization]),
      [['unverified', undefined]],
    );
  });
});

describe('an identity assertion that does not verify', () => {
  const trust = { anchors: list('signers.pem'), publisher_anchors: list('publishers.pem') };

  async function signedBy(wishes: Partial<TestIdentity['signer']>): Promise<Buffer> {
    return (await signWav(testAuthor({ publisher: { ...publisher.signer, ...wishes } }))).bytes;
  }

  async function assertRefused(file: Uint8Array, failure: string): Promise<void> {
    const verification = await verified(file, trust);
    assert.equal(verification.state, 'trusted', 'the manifest is what its signer signed');
    const [identity] = identitiesOf(verification);
    assert.deepEqual([identity?.state, identity?.organization], ['invalid', undefined]);
    assert(identity?.failures?.includes(failure), String(identity?.failures));
    assert.doesNotMatch(verification.summary, /published by|Example News/i);
    assert.match(verification.summary, /does not verify/);
  }

  test('has the signature of another key', async () => {
    await assertRefused(await signedBy({ sign: defaultIdentity.signer.sign }), 'cawg.x509.signature.mismatch');
  });

  test('has a signature of other data', async () => {
    const sign = (data: Uint8Array): Promise<Buffer> => publisher.signer.sign(data.subarray(1));
    await assertRefused(await signedBy({ sign }), 'cawg.x509.signature.mismatch');
  });

  test('has a signature structure in which any byte was changed', async () => {
    const definition = dryRunManifest({ assertions: [], actions: [] });
    const { sign, ...assertion } = identityAssertionOf(publisher.signer, definition);
    const key = { ...zeroSignature(defaultIdentity.signer), sign: defaultIdentity.signer.sign };
    const settings = identitySettings({
      publishers: [{ name: 'publishers', pem: String(rootOf(publisher)) }],
      allowed: [],
    });
    const WasmReader = await wasmReader();
    const stateOf = async (change: (envelope: Buffer) => Buffer): Promise<string | undefined> => {
      const identityAssertion = { ...assertion, sign: async (payload: SignerPayload) => change(await sign(payload)) };
      const store = await signManifest(definition, { ...key, identityAssertion }, new AbortController().signal);
      const report = (
        await WasmReader.fromBytes('application/c2pa', store, settings)
      ).manifestStore() as ManifestReport;
      const described = { ...describeReport(report, 'summary'), state: 'trusted' } as const;
      return withIdentities(described, [report], undefined).manifests[0]?.identity_assertions?.[0]?.state;
    };
    assert.equal(await stateOf((envelope) => envelope), 'trusted');
    const envelopeBytes = assertion.sizeBytes - 200;
    await fc.assert(
      fc.asyncProperty(fc.nat(envelopeBytes), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const state = await stateOf((envelope) => {
          const changed = Buffer.from(envelope);
          // The byte that says that the payload is left out, which may say so in three ways.
          const leftOut = changed.length - publisher.signer.signatureSizeBytes - 3;
          const index = at % changed.length === leftOut ? leftOut + 1 : at % changed.length;
          changed[index] = (changed[index] as number) ^ mask;
          return changed;
        });
        assert(state === 'invalid' || state === 'unverified', `${state} with ${mask} at ${at}`);
      }),
      { numRuns: 100 },
    );
  });

  test('cannot be read', async () => {
    const report = { manifests: {} };
    const { manifests } = await verified(bytes, trust);
    const listed = manifests.map(({ identity_assertions: _, ...manifest }) => manifest);
    const described: Omit<Verification, 'summary'> = { state: 'trusted', codes: [], manifests: listed };
    const [identity] = withIdentities(described, [report], undefined).manifests;
    assert.deepEqual(identity?.identity_assertions, [{ state: 'unverified', kind: 'other', roles: [] }]);
  });

  test('has a type of signature with a name that every object has', () => {
    const data = { signer_payload: { sig_type: 'constructor' } };
    const report: ManifestReport = { manifests: { one: { assertions: [{ label: 'cawg.identity', data }] } } };
    const described = { ...describeReport({ ...report, active_manifest: 'one' }, 'summary'), state: 'valid' } as const;
    const [identity] = withIdentities(described, [report], undefined).manifests;
    assert.deepEqual(identity?.identity_assertions, [{ state: 'unverified', kind: 'other', roles: [] }]);
  });

  test('has a certificate that has ended since', async (t) => {
    const [now, from, to] = [Date.now(), -20, -5];
    const [notBefore, notAfter] = [from, to].map((days) => new Date(now + days * DAY_MS)) as [Date, Date];
    const ended = await testIdentity({ leaf: { ...leaf, notBefore, notAfter } });
    t.mock.timers.enable({ apis: ['Date'], now: now - 10 * DAY_MS });
    const file = (await signWav(testAuthor({ publisher: ended.signer }))).bytes;
    t.mock.timers.reset();
    writeFileSync(join(lists, 'ended.pem'), rootOf(ended));
    const verification = await verified(file, { ...trust, publisher_anchors: list('ended.pem') });
    const [identity] = identitiesOf(verification);
    assert.deepEqual([verification.state, identity?.state], ['trusted', 'unverified']);
    assert.deepEqual(identity?.failures, ['cawg.x509.signature.outside_validity']);
    assert.doesNotMatch(verification.summary, /published by|Example News/i);
  });
});
