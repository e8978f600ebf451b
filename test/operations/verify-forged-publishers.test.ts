import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import * as cborg from 'cborg';
import type { Verification, VerifiedIdentity } from '#contract/verification.ts';
import { summarize } from '#operations/verification/summarize.ts';
import { identityAssertionOf } from '#provenance/authoring/identity-assertion.ts';
import { withIdentities } from '#provenance/describe-identities.ts';
import { describeReport } from '#provenance/describe-report.ts';
import { dryRunManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { onlyCbor } from '#provenance/jumbf.ts';
import { mostIdentitiesIn, readIdentities } from '#provenance/publisher-report.ts';
import type { SignerPayload } from '#provenance/sdk/sdk.ts';
import { NO_TRUST_LISTS, TrustLists } from '#provenance/trust-lists.ts';
import { collectSdkObjects } from '../support/manifests/collect-sdk-objects.ts';
import { forgeStore, type StoredAssertion, storedAssertions, withContent } from '../support/manifests/forge-store.ts';
import { requestWith, signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { defaultIdentity, testIdentity } from '../support/manifests/test-identity.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Anybody with a certificate signs a manifest, with whatever assertions, and with a label of his choice.

after(collectSdkObjects);

const home = temporaryFolder();
const never = new AbortController().signal;
const wav = smallWav();
const { signer } = defaultIdentity;
const publisher = await testIdentity({ leaf: { commonName: 'Example publisher', organization: 'Example News' } });
const forger = await testIdentity({ leaf: { commonName: 'Forger', organization: 'BBC' } });
const lists = writeFiles(join(home, 'lists'), {
  'signers.pem': Buffer.from(pemOf(defaultIdentity.chain.at(-1) as Buffer)),
  'publishers.pem': Buffer.from(pemOf(publisher.chain.at(-1) as Buffer)),
});
const trust = { anchors: [join(lists, 'signers.pem')], publisher_anchors: [join(lists, 'publishers.pem')] };
let count = 0;

const genuine = await detachedManifest();
const assertions = storedAssertions(genuine).filter(({ label }) => label !== 'cawg.identity');
const [published] = storedAssertions(genuine).filter(({ label }) => label === 'cawg.identity') as [StoredAssertion];

/** Signs a file whose manifest lies in a sidecar. */
async function detachedManifest(): Promise<Uint8Array> {
  const data = { exclusions: [], name: 'x', alg: 'sha256', hash: [...hash('sha256', wav, 'buffer')], pad: [] };
  const late = [{ label: 'c2pa.hash.data', data }];
  const draft = await testAuthor({ publisher: publisher.signer }).draft(requestWith(), never);
  await draft.measure(late, never);
  return (await draft.sign(late, never)).manifest;
}

/** Returns an identity assertion by the forger that refers to the same as another one. */
async function forged({ label, box }: StoredAssertion): Promise<StoredAssertion> {
  const { signer_payload: payload } = cborg.decode(onlyCbor(box) as Uint8Array) as { signer_payload: SignerPayload };
  const others = payload.referenced_assertions.map(() => ({ label: 'com.example.any', data: {} }));
  const { json, ...definition } = dryRunManifest({ assertions: [], actions: [] });
  const own = identityAssertionOf(forger.signer, { ...definition, json: { ...json, assertions: others } });
  const signature = new Uint8Array(await own.sign(payload));
  const content = { signer_payload: payload, signature, pad1: new Uint8Array(20) };
  return { label, box: withContent(box, cborg.encode(content, { mapSorter: () => 0 })) };
}

async function verified(store: Uint8Array): Promise<Verification> {
  const folder = writeFiles(join(home, String(count++)), { 'a.wav': wav, 'a.c2pa': Buffer.from(store) });
  return (await verifyInput({ type: 'local_file_path', path: join(folder, 'a.wav') }, folder, { trust })).verification;
}

function identitiesOf({ manifests }: Pick<Verification, 'manifests'>, index = 0): readonly VerifiedIdentity[] {
  return manifests[index]?.identity_assertions ?? [];
}

describe('"Published by" is said of nobody', () => {
  test('whose assertion stands beside that of a publisher', async () => {
    const own = await forged(published);
    const alone = await verified(await forgeStore(genuine, { assertions: [...assertions, own], signer }));
    assert.match(alone.summary, /It names "BBC" as its publisher, who is on no list/, 'the forgery is in order');
    for (const [first, second] of [
      [own, published],
      [published, own],
    ] as const) {
      const both = [...assertions, first, { ...second, label: 'cawg.identity__1' }];
      const verification = await verified(await forgeStore(genuine, { assertions: both, signer }));
      assert.equal(verification.state, 'trusted');
      const states = identitiesOf(verification).map(({ state, organization }) => [state, organization]);
      assert.deepEqual(states, [['unverified', undefined]]);
      assert.doesNotMatch(verification.summary, /published by|BBC/i);
    }
  });

  test('whose manifest has the label of one that a publisher vouches for', async () => {
    const label = 'urn:c2pa:11111111-2222-4333-8444-555555555555';
    const own = await forged(published);
    const publishers = [{ name: 'publishers', pem: pemOf(publisher.chain.at(-1) as Buffer) }];
    const trusted = new TrustLists({ ...NO_TRUST_LISTS.data, publishers });
    const reports = [];
    for (const identity of [published, own]) {
      const store = await forgeStore(genuine, { label, assertions: [...assertions, identity], signer });
      reports.push(await readIdentities(store, mostIdentitiesIn(store), trusted, never));
    }
    for (const [first, second] of [reports, reports.toReversed()]) {
      assert(first != null && second != null);
      const described = { ...describeReport(first, 'summary'), state: 'trusted' } as const;
      const [identity] = identitiesOf(withIdentities(described, [first, second], undefined));
      assert.deepEqual([identity?.state, identity?.organization], ['unverified', undefined]);
    }
  });

  test('for an ingredient that was changed', async () => {
    const { bytes } = await signWav(testAuthor({ publisher: publisher.signer }));
    const path = join(writeFiles(join(home, String(count++)), { 'film.wav': changed(bytes) }), 'film.wav');
    const origin = { kind: 'file', path, title: 'film.wav', mediaType: 'audio/wav' } as const;
    const outer = await signWav(testAuthor(), { origin });
    const folder = writeFiles(join(home, String(count++)), { 'a.wav': outer.bytes });
    const input = { type: 'local_file_path', path: join(folder, 'a.wav') } as const;
    const { verification } = await verifyInput(input, folder, { trust });
    assert.deepEqual([verification.state, verification.manifests[0]?.ingredients[0]?.state], ['trusted', 'invalid']);
    const [identity] = identitiesOf(verification, 1);
    assert.deepEqual([identity?.state, identity?.organization], ['unverified', undefined]);
  });
});

test("a time-stamp is not trusted for an ingredient's, whose label begins like that of the manifest", () => {
  const [outer, inner] = ['urn:c2pa:1', 'urn:c2pa:12'];
  const trusted = { code: 'timeStamp.trusted', url: `self#jumbf=/c2pa/${inner}/c2pa.signature` };
  const validationDeltas = { success: [trusted], informational: [], failure: [] };
  const info = { signature_info: { time: '2026-01-01T00:00:00+00:00' } };
  const { manifests } = describeReport(
    {
      active_manifest: outer,
      manifests: { [outer]: { ...info, ingredients: [{ active_manifest: inner }] }, [inner]: info },
      validation_results: { ingredientDeltas: [{ validationDeltas }] },
    },
    'summary',
  );
  assert.deepEqual(
    manifests.map(({ time_stamp: stamp }) => stamp?.trusted),
    [false, true],
  );
});

describe('a name in a verdict', () => {
  test('ends no sentence and no line, and turns no text around', async () => {
    const verification = await verified(genuine);
    const [active] = verification.manifests;
    const [identity] = identitiesOf(verification);
    assert(active !== undefined && identity !== undefined);
    for (const character of ['\n', '\r', '\u0000', '\u2028', '\u202e', '\u2066', '\u200f']) {
      const named = { ...identity, organization: `a${character}b", and "c` };
      const told = summarize({ ...verification, manifests: [{ ...active, identity_assertions: [named] }] });
      assert.match(told, /Published by "a b', and 'c", who is on publishers/, JSON.stringify(character));
    }
  });
});

function changed(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.length - 1] = (copy.at(-1) as number) ^ 1;
  return copy;
}
