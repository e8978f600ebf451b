import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Builder } from '@contentauth/c2pa-node';
import { zeroSignature } from '#provenance/authoring/sign-manifest.ts';
import { dryRunManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import type { IngredientSource, ManifestRequest } from '#provenance/manifest-request.ts';
import { signManifest } from '#provenance/sdk/sdk.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { generator, plainParent, signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { defaultIdentity, testIdentity } from '../support/manifests/test-identity.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'author-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const author = testAuthor();
const never = new AbortController().signal;

function fileWith(name: string, bytes: Uint8Array, mediaType = 'audio/wav'): IngredientSource & { kind: 'file' } {
  const file = path.join(folder, name);
  writeFileSync(file, bytes);
  return { kind: 'file', path: file, title: name, mediaType };
}

/** The actions of a signed file, each with the titles of the ingredients that it refers to. */
async function actionsIn(bytes: Uint8Array): Promise<string[][]> {
  const { actions, ingredients } = await readManifest(bytes);
  const titles = new Map(ingredients.map(({ title, label }) => [`self#jumbf=c2pa.assertions/${label}`, title ?? '']));
  return actions.map(({ action, parameters }) => [
    action,
    ...(parameters?.ingredients ?? []).map(({ url }) => titles.get(url) ?? url),
  ]);
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
    assert.partialDeepStrictEqual(manifest.claim_generator_info[0], { ...generator, specVersion: '2.4.0' });
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

  test('vouches for ingredients that were read, and gathers them where one was only named', async () => {
    const read = [plainParent, fileWith('first.wav', signed)] as const;
    const named = { kind: 'reference', reference: 'asset-4711' } as const;
    for (const [parent, components, isVouchedFor] of [
      [read[0], [], true],
      [read[1], [read[0]], true],
      [named, [], false],
      [named, [read[1]], false],
      [fileWith('torn.wav', signed.subarray(0, signed.length - 4000)), [], false],
    ] as const) {
      const { bytes, manifest } = await signWav(author, { origin: parent, components });
      await assertValid(bytes, 'audio/wav');
      const text = Buffer.from(manifest).toString('latin1');
      const claim = text.slice(text.lastIndexOf('created_assertions'));
      const [created = '', gathered = ''] = claim.split('gathered_assertions');
      assert.equal(
        (isVouchedFor ? created : gathered).split('c2pa.assertions/c2pa.ingredient.v3').length,
        2 + components.length,
      );
    }
  });

  test('names an unsigned source by the identifier in its XMP, whatever its length', async () => {
    for (const instanceId of ['xmp.iid:4711', 'uuid:\u00fc'.padEnd(44, 'x'), 'x'.repeat(255)]) {
      const { bytes } = await signWav(author, { origin: { ...plainParent, instanceId } });
      await assertValid(bytes, 'audio/wav');
      assert.equal((await readManifest(bytes)).ingredients[0]?.instance_id, instanceId);
    }
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
    const { signer } = await testIdentity();
    const sign = (): Promise<Buffer> => Promise.reject(new Error('the key is in another place'));
    await assert.rejects(signWav(testAuthor({ signer: { ...signer, sign } })), { reason: 'SIGNATURE_FAILED' });
    const assertions = [{ label: 'com.example.text', data: '\ud800' }];
    await assert.rejects(signWav(author, { assertions }), { reason: 'MANIFEST_REFUSED' });
  });

  test('keeps the chain of a signed parent', async () => {
    const { bytes, warnings } = await signWav(author, { origin: fileWith('first.wav', signed) });
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
    const second = await signWav(author, { origin: fileWith('g1.wav', signed) });
    const parent = fileWith('g2.wav', second.bytes);
    const { bytes, warnings } = await signWav(author, {
      origin: parent,
      components: [parent, fileWith('g1.wav', signed)],
    });
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
    const { bytes } = await signWav(author, { origin: { kind: 'reference', reference }, allActionsIncluded: false });
    await assertValid(bytes, 'audio/wav');
    const manifest = await readManifest(bytes);
    assert.partialDeepStrictEqual(manifest.ingredients, [{ title: reference, relationship: 'parentOf' }]);
    assert.equal(manifest.allActionsIncluded, false);
  });

  test('opens the parent, places components, and refers to the ingredients of its own actions where readers allow it', async () => {
    const [other, input, first] = [
      { ...plainParent, title: 'other.wav' },
      { ...plainParent, title: 'input.wav' },
      fileWith('first.wav', signed),
    ];
    const { bytes } = await signWav(author, {
      components: [other, first],
      inputs: [input],
      actions: [
        { action: 'c2pa.repackaged', on: [plainParent, input] },
        { action: 'c2pa.transcoded', on: [plainParent] },
        { action: 'c2pa.transcoded', on: [input], description: 'input.wav: pcm-s16 to flac' },
      ],
    });
    await assertValid(bytes, 'audio/wav');
    assert.deepEqual(await actionsIn(bytes), [
      ['c2pa.opened', 'source.wav'],
      ['c2pa.placed', 'other.wav'],
      ['c2pa.placed', 'first.wav'],
      ['c2pa.repackaged', 'source.wav', 'input.wav'],
      ['c2pa.transcoded', 'source.wav'],
      ['c2pa.transcoded'],
    ]);
    const { actions, ingredients } = await readManifest(bytes);
    assert.equal(actions.at(-1)?.description, 'input.wav: pcm-s16 to flac');
    assert.deepEqual(
      ingredients.map(({ relationship }) => relationship),
      ['parentOf', 'componentOf', 'componentOf', 'inputTo'],
    );
  });

  test('begins media that were made anew with their creation, and without ingredients', async () => {
    const digitalSourceType = 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture';
    const { bytes } = await signWav(author, {
      origin: { kind: 'created', digitalSourceType },
      statedActions: [{ action: 'c2pa.transcoded' }],
      allActionsIncluded: true,
    });
    await assertValid(bytes, 'audio/wav');
    const manifest = await readManifest(bytes);
    assert.deepEqual(manifest.actions, [{ action: 'c2pa.created', digitalSourceType }, { action: 'c2pa.transcoded' }]);
    assert.deepEqual([manifest.ingredients ?? [], manifest.allActionsIncluded], [[], true]);
  });

  test('carries the actions of the caller as they are, conversions with the parent', async () => {
    const edited = {
      action: 'c2pa.edited',
      when: '2026-11-21T09:30:00+01:00',
      softwareAgent: { name: 'Example Cut', version: '7' },
      description: 'Paintbrush tool',
      digitalSourceType: 'http://cv.iptc.org/newscodes/digitalsourcetype/humanEdits',
      parameters: { multipleInstances: true, 'com.example.strength': { curve: [0.1, -2.5e-9, null], name: 'ü' } },
    };
    const statedActions = [edited, { action: 'com.example.graded' }, { action: 'c2pa.transcoded' }];
    const { bytes } = await signWav(author, { statedActions, allActionsIncluded: false });
    await assertValid(bytes, 'audio/wav');
    const { actions, allActionsIncluded } = await readManifest(bytes);
    assert.deepEqual(actions.slice(1, 3), [edited, { action: 'com.example.graded' }]);
    assert.deepEqual((await actionsIn(bytes)).at(-1), ['c2pa.transcoded', 'source.wav']);
    assert.equal(allActionsIncluded, false);
  });

  test('says that something unknown happened where only the parent is known', async () => {
    const named = { kind: 'reference', reference: 'asset-4711' } as const;
    const actions = async (wishes: Partial<ManifestRequest>): Promise<string[]> => {
      const { bytes } = await signWav(author, { origin: named, ...wishes });
      await assertValid(bytes, 'audio/wav');
      return (await readManifest(bytes)).actions.map(({ action }) => action);
    };
    assert.deepEqual(await actions({ allActionsIncluded: false }), ['c2pa.opened', 'c2pa.unknown']);
    assert.deepEqual(await actions({ allActionsIncluded: true }), ['c2pa.opened']);
    const statedActions = [{ action: 'c2pa.trimmed' }];
    assert.deepEqual(await actions({ allActionsIncluded: false, statedActions }), ['c2pa.opened', 'c2pa.trimmed']);
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
    const { bytes, warnings } = await signWav(author, { origin: parent });
    await assertValid(bytes, 'audio/wav');
    assert.deepEqual(warnings, []);
    assert.equal((await readManifest(bytes)).manifestCount, 2);
  });

  test('signs exactly as many bytes as it measured, whatever the lengths of titles, and for files of a batch alike', async () => {
    for (const length of [0, 1, 22, 23, 24, 62, 63, 64, 65, 127, 128, 254, 255, 256, 300, 5000, 65_535, 65_536]) {
      const title = length % 2 === 0 ? 'ä'.repeat(length / 2) : 'x'.repeat(length);
      const parent = { ...plainParent, title };
      const { measuredBytes, manifest } = await signWav(author, { title, origin: parent, components: [parent] });
      assert.equal(manifest.length, measuredBytes);
      assert.equal(Buffer.from(manifest).readUInt32BE(), measuredBytes, 'the manifest store is all of it');
    }
    const batch = await Promise.all(['a', 'b', 'c'].map((name) => signWav(author, { title: `track-${name}.wav` })));
    assert.equal(new Set(batch.map(({ measuredBytes }) => measuredBytes)).size, 1);
    for (const { bytes } of batch) await assertValid(bytes, 'audio/wav');
  });

  test('reaches every size from the smallest on, beyond each length at which CBOR takes another byte', async () => {
    const definition = dryRunManifest({ assertions: [], actions: [] });
    const { call, sign } = zeroSignature(defaultIdentity.signer);
    const smallest = (await signManifest(definition, { call, sign }, never)).length;
    for (const spare of [...Array(320).keys(), ...[1000, 4096, 60_000].flatMap((size) => [size, size + 1, size + 2])]) {
      const larger = { ...call, reserveSize: call.reserveSize + spare };
      const { length } = await signManifest(definition, { call: larger, sign }, never);
      assert.equal(length, smallest + spare);
    }
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
      const { bytes, warnings } = await signWav(author, { origin: fileWith('picture', picture, mediaType) });
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
  const { signer } = await testIdentity();
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
      const { bytes, warnings } = await signWav(author, { origin: parent });
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
    const { bytes, warnings } = await signWav(author, { origin: parent });
    await assertValid(bytes, 'audio/wav');
    assert.equal(warnings.length, 1);
  });

  test('is a plain ingredient without a warning: it has no manifest', async () => {
    const { bytes, warnings } = await signWav(author, { origin: fileWith('plain.wav', smallWav()) });
    await assertValid(bytes, 'audio/wav');
    assert.deepEqual(warnings, []);
  });

  test('is a plain ingredient: the SDK does not know its media type', async () => {
    const { bytes } = await signWav(author, { origin: fileWith('notes.txt', Buffer.from('hello'), 'text/plain') });
    await assertValid(bytes, 'audio/wav');
  });

  test('does not take the other ingredients with it', async () => {
    const broken = fileWith('broken.wav', garbleManifest(Buffer.from(signed), 0));
    const { bytes, warnings } = await signWav(author, { origin: broken, components: [fileWith('good.wav', signed)] });
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
