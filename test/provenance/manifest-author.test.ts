import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Builder } from '@contentauth/c2pa-node';
import type { IngredientSource } from '#provenance/authoring/manifest-author.ts';
import { pemOf } from '#provenance/identity/certificate.ts';
import { assertValid } from '../formats/judges.ts';
import { readManifest } from './read-manifest.ts';
import { generator, plainParent, signWav, smallWav, testAuthor } from './sign-wav.ts';
import { testIdentity } from './test-identity.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'author-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const author = testAuthor();

function fileWith(name: string, bytes: Uint8Array, mediaType = 'audio/wav'): IngredientSource & { kind: 'file' } {
  const file = path.join(folder, name);
  writeFileSync(file, bytes);
  return { kind: 'file', path: file, title: name, mediaType };
}

describe('the author of manifests', () => {
  let signed: Buffer;
  before(async () => {
    signed = (await signWav(author, { title: 'first.wav' })).bytes;
  });

  test('states generator, title, and the opened parent first of all actions', async () => {
    await assertValid(signed, 'audio/wav');
    const manifest = await readManifest(signed);
    assert.equal(manifest.claim_version, 2);
    assert.equal(manifest.title, 'first.wav');
    assert.partialDeepStrictEqual(manifest.claim_generator_info[0], generator);
    assert.partialDeepStrictEqual(manifest.ingredients, [
      { title: 'source.wav', format: 'audio/wav', relationship: 'parentOf' },
    ]);
    assert.deepEqual(
      manifest.actions.map(({ action }) => action),
      ['c2pa.opened'],
    );
    assert.deepEqual(manifest.actions[0]?.softwareAgent, generator);
    assert.equal(manifest.allActionsIncluded, true);
  });

  test('puts its own actions among the created assertions and the custom ones among the gathered', async () => {
    const { bytes, manifest } = await signWav(author, {
      assertions: [{ label: 'com.example.review', data: { ok: true } }],
    });
    await assertValid(bytes, 'audio/wav');
    const { assertions } = await readManifest(bytes);
    assert.equal(assertions.find(({ label }) => label === 'c2pa.actions.v2')?.created, true);
    assert.notEqual(assertions.find(({ label }) => label === 'com.example.review')?.created, true);
    const claim = Buffer.from(manifest).toString('latin1');
    const created = claim.slice(claim.indexOf('created_assertions'), claim.indexOf('gathered_assertions'));
    assert(created.includes('c2pa.assertions/c2pa.hash.data'));
    assert(!created.includes('com.example.review'));
  });

  test("stores assertions of a standard as CBOR, as the standard has it, and the caller's own as JSON", async () => {
    const data = { entries: { 'c2pa.ai_training': { use: 'notAllowed' } } };
    const assertions = ['c2pa.training-mining', 'com.example.mining'].map((label) => ({ label, data }));
    const { bytes, manifest } = await signWav(author, { assertions });
    await assertValid(bytes, 'audio/wav');
    const text = Buffer.from(manifest).toString('latin1');
    assert.equal(text.split(JSON.stringify(data)).length - 1, 1);
    const shown = (await readManifest(bytes)).assertions.filter(({ label }) => label.endsWith('mining'));
    assert.deepEqual(
      shown.map((assertion) => assertion.data),
      [data, data],
    );
  });

  test('tells a key that cannot be used from a manifest that cannot be made', async () => {
    const { signer } = testIdentity();
    const sign = (): Promise<Buffer> => Promise.reject(new Error('the key is in another place'));
    await assert.rejects(signWav(testAuthor({ signer: { ...signer, sign } })), { reason: 'SIGNATURE_FAILED' });
    const assertions = [{ label: 'com.example.text', data: '\ud800' }];
    await assert.rejects(signWav(author, { assertions }), { reason: 'MANIFEST_REFUSED' });
  });

  test('blames the identity where it expired while the service ran', async () => {
    const past = (days: number): Date => new Date(Date.now() - days * 24 * 60 * 60 * 1000);
    const { signer } = testIdentity({ leaf: { notBefore: past(2), notAfter: past(1) } });
    await assert.rejects(signWav(testAuthor({ signer })), { reason: 'IDENTITY_EXPIRED', code: 'INTERNAL_ERROR' });
  });

  test('keeps the chain of a signed parent', async () => {
    const { bytes, warnings } = await signWav(author, { parent: fileWith('first.wav', signed) });
    await assertValid(bytes, 'audio/wav');
    const manifest = await readManifest(bytes);
    assert.deepEqual(warnings, []);
    assert.equal(manifest.manifestCount, 2);
    assert.equal(manifest.ingredients[0]?.relationship, 'parentOf');
    assert.equal(manifest.ingredients[0]?.title, 'first.wav');
    assert.deepEqual(
      manifest.ingredients[0]?.validation_results?.activeManifest.failure.map(({ code }) => code),
      ['signingCredential.untrusted'],
    );
  });

  test('keeps three generations, and the same file as parent and component once', async () => {
    const second = await signWav(author, { parent: fileWith('g1.wav', signed) });
    const parent = fileWith('g2.wav', second.bytes);
    const { bytes, warnings } = await signWav(author, { parent, components: [parent, fileWith('g1.wav', signed)] });
    await assertValid(bytes, 'audio/wav');
    const manifest = await readManifest(bytes);
    assert.deepEqual(warnings, []);
    assert.equal(manifest.manifestCount, 3);
    assert.deepEqual(
      manifest.ingredients.map(({ relationship }) => relationship),
      ['parentOf', 'componentOf'],
    );
  });

  test('carries a reference as the title of a bare parent', async () => {
    const reference = 'urn:archive:4711/ä "quoted"';
    const { bytes } = await signWav(author, { parent: { kind: 'reference', reference }, allActionsIncluded: false });
    await assertValid(bytes, 'audio/wav');
    const manifest = await readManifest(bytes);
    assert.partialDeepStrictEqual(manifest.ingredients, [{ title: reference, relationship: 'parentOf' }]);
    assert.equal(manifest.allActionsIncluded, false);
  });

  test('places components after opening the parent, and then says what became of the parent', async () => {
    const { bytes } = await signWav(author, {
      components: [{ ...plainParent, title: 'other.wav' }, fileWith('first.wav', signed)],
      actions: ['c2pa.transcoded', 'c2pa.repackaged'],
    });
    await assertValid(bytes, 'audio/wav');
    const { actions, ingredients } = await readManifest(bytes);
    const labels = new Map(ingredients.map(({ title, label }) => [`self#jumbf=c2pa.assertions/${label}`, title]));
    const shown = actions.map(({ action, parameters }) => [
      action,
      labels.get(parameters?.ingredients?.[0]?.url ?? ''),
    ]);
    assert.deepEqual(shown, [
      ['c2pa.opened', 'source.wav'],
      ['c2pa.placed', 'other.wav'],
      ['c2pa.placed', 'first.wav'],
      ['c2pa.transcoded', 'source.wav'],
      ['c2pa.repackaged', 'source.wav'],
    ]);
  });

  test('attaches a manifest store that came on its own, with the results of who read it', async () => {
    const { manifest } = await signWav(author);
    const validationResults = { activeManifest: { success: [], informational: [], failure: [] } };
    const parent = {
      kind: 'manifest-store',
      title: 'publication',
      mediaType: 'video/mp4',
      manifestStore: manifest,
      validationResults,
    } as const;
    const { bytes, warnings } = await signWav(author, { parent });
    await assertValid(bytes, 'audio/wav');
    assert.deepEqual(warnings, []);
    assert.equal((await readManifest(bytes)).manifestCount, 2);
  });

  test('measures no less than it signs, whatever the lengths of titles, and for files of a batch alike', async () => {
    const sizes = new Set<number>();
    for (const length of [0, 1, 22, 23, 24, 62, 63, 64, 65, 127, 128, 254, 255, 256, 300, 5000, 65_535, 65_536]) {
      const title = length % 2 === 0 ? 'ä'.repeat(length / 2) : 'x'.repeat(length);
      const parent = { ...plainParent, title };
      const { measuredBytes, manifest } = await signWav(author, { title, parent, components: [parent] });
      assert(manifest.length <= measuredBytes && measuredBytes - manifest.length < 3 * 64 + 64);
      sizes.add(measuredBytes);
    }
    assert(sizes.size < 12);
    const batch = await Promise.all(['a', 'b', 'c'].map((name) => signWav(author, { title: `track-${name}.wav` })));
    assert.equal(new Set(batch.map(({ measuredBytes }) => measuredBytes)).size, 1);
    for (const { bytes } of batch) await assertValid(bytes, 'audio/wav');
  });

  test('stops with the signal', async () => {
    const stop = new Error('stop');
    await assert.rejects(signWav(author, {}, smallWav(), AbortSignal.abort(stop)), stop);
  });
});

describe('a parent that is a picture', () => {
  test('brings its chain, whatever media type it was said to have', async () => {
    const picture = await signedPicture();
    for (const mediaType of ['image/png', 'application/octet-stream', 'image/jpeg']) {
      const { bytes, warnings } = await signWav(author, { parent: fileWith('picture', picture, mediaType) });
      await assertValid(bytes, 'audio/wav');
      const manifest = await readManifest(bytes);
      assert.deepEqual(warnings, []);
      assert.equal(manifest.manifestCount, 2);
      assert.equal(manifest.ingredients[0]?.format, 'image/png');
    }
  });
});

/** A picture of one pixel, signed by the SDK alone. */
async function signedPicture(): Promise<Buffer> {
  const { signer } = testIdentity();
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const builder = Builder.withJson({ claim_generator_info: [generator], title: 'picture', assertions: [] } as never);
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  const output: { buffer: Buffer | null } = { buffer: null };
  await builder.signConfigAsync(
    (data) => signer.sign(data),
    {
      alg: 'es256',
      certs: signer.certificateChain.map((der) => Buffer.from(pemOf(der))),
      reserveSize: 4000,
      directCoseHandling: false,
    },
    { buffer: Buffer.from(pixel, 'base64'), mimeType: 'image/png' },
    output,
  );
  assert(output.buffer !== null);
  return output.buffer;
}

describe('a parent that cannot be read whole', () => {
  let signed: Buffer;
  before(async () => {
    signed = (await signWav(author)).bytes;
  });

  const cases: readonly {
    readonly what: string;
    readonly damage: (bytes: Buffer) => Uint8Array;
    readonly manifests: number;
  }[] = [
    { what: 'was changed after it was signed', damage: flipSample, manifests: 2 },
    { what: 'has a manifest of garbage', damage: (bytes) => garbleManifest(bytes, 0), manifests: 1 },
    { what: 'has garbage inside its manifest', damage: (bytes) => garbleManifest(bytes, 1000), manifests: 1 },
    { what: 'is cut off', damage: (bytes) => bytes.subarray(0, 600), manifests: 1 },
    { what: 'is empty', damage: () => Buffer.alloc(0), manifests: 1 },
  ];
  for (const { what, damage, manifests } of cases) {
    test(`is attached with a warning: it ${what}`, async () => {
      const parent = fileWith('broken.wav', damage(Buffer.from(signed)));
      const { bytes, warnings } = await signWav(author, { parent });
      await assertValid(bytes, 'audio/wav');
      const manifest = await readManifest(bytes);
      assert.deepEqual(
        warnings.map(({ reason }) => reason),
        [manifests === 2 ? 'INGREDIENT_INVALID' : 'INGREDIENT_UNREADABLE'],
      );
      assert.equal(manifest.manifestCount, manifests);
      assert.partialDeepStrictEqual(manifest.ingredients, [{ title: 'broken.wav', relationship: 'parentOf' }]);
    });
  }

  test('is attached with a warning: it does not exist any more', async () => {
    const parent = { ...plainParent, kind: 'file', path: '/nowhere/source.wav' } as const;
    const { bytes, warnings } = await signWav(author, { parent });
    await assertValid(bytes, 'audio/wav');
    assert.equal(warnings.length, 1);
  });

  test('is a plain ingredient without a warning: it has no manifest', async () => {
    const { bytes, warnings } = await signWav(author, { parent: fileWith('plain.wav', smallWav()) });
    await assertValid(bytes, 'audio/wav');
    assert.deepEqual(warnings, []);
  });

  test('is a plain ingredient: the SDK does not know its media type', async () => {
    const { bytes } = await signWav(author, { parent: fileWith('notes.txt', Buffer.from('hello'), 'text/plain') });
    await assertValid(bytes, 'audio/wav');
  });

  test('does not take the other ingredients with it', async () => {
    const broken = fileWith('broken.wav', garbleManifest(Buffer.from(signed), 0));
    const { bytes, warnings } = await signWav(author, { parent: broken, components: [fileWith('good.wav', signed)] });
    await assertValid(bytes, 'audio/wav');
    assert.equal(warnings.length, 1);
    assert.equal((await readManifest(bytes)).manifestCount, 2);
  });
});

function flipSample(bytes: Buffer): Buffer {
  bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
  return bytes;
}

function garbleManifest(bytes: Buffer, offset: number): Buffer {
  const start = bytes.indexOf('C2PA', 44, 'latin1') + 8 + offset;
  return bytes.fill(7, start, start + 200);
}
