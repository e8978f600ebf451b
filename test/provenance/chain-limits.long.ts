import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { executePlan, fillHole } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { riff } from '#formats/riff/riff.ts';
import { CHAIN_LIMITS, ChainAllowance, exceedsChainLimits } from '#provenance/chain-limits.ts';
import type { IngredientSource } from '#provenance/manifest-request.ts';
import { checkOutput } from '#provenance/official-reader.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { memorySink, memorySource } from '../support/memory-bytes.ts';
import { box, chainOf, manifestOf, storeByHand, storeOver, superbox, typedSuperbox } from './manifest-store-bytes.ts';

const folder = mkdtempSync(join(tmpdir(), 'attestream-chains-'));
after(() => rmSync(folder, { recursive: true }));
const author = testAuthor();
const never = new AbortController().signal;

const admit = (store: Uint8Array) => new ChainAllowance().admit(store).exceeded;

/** Manifests in a row, each of which leads to the one before as often as is said. */
function chain(count: number, times = 1): Record<string, string[]> {
  const labels = Array.from({ length: count }, (_, index) => `m${index}`);
  return Object.fromEntries(
    labels.map((label, index) => [label, new Array(index === 0 ? 0 : times).fill(`m${index - 1}`)]),
  );
}

function storeIngredient(manifestStore: Uint8Array): IngredientSource {
  const validationResults = { activeManifest: { success: [], informational: [], failure: [] } };
  return { kind: 'manifest-store', title: 'earlier', mediaType: 'audio/wav', manifestStore, validationResults };
}

function written(name: string, bytes: Uint8Array): IngredientSource & { kind: 'file' } {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return { kind: 'file', path, title: name, mediaType: 'audio/wav' };
}

test('a row of manifests is admitted as long as the output on top of it can be read', () => {
  assert.equal(admit(storeByHand(chain(CHAIN_LIMITS.depth - 1))), null);
  assert.deepEqual(admit(storeByHand(chain(CHAIN_LIMITS.depth))), {
    measure: 'depth',
    value: CHAIN_LIMITS.depth + 1,
    limit: CHAIN_LIMITS.depth,
  });
});

test('manifests that share their ingredients are counted as often as readers validate them', () => {
  assert.equal(admit(storeByHand(chain(8, 2))), null, '255 validations');
  for (const [count, times] of [
    [10, 2],
    [60, 2],
    [900, 9],
  ] as const) {
    const { measure } = admit(storeByHand(chain(count, times))) ?? {};
    assert(measure === 'validations' || measure === 'depth');
  }
});

test('the ingredients of one output share its limits, and one that was counted is not counted again', () => {
  const allowance = new ChainAllowance();
  const first = storeByHand(chain(9, 2));
  assert.equal(allowance.admit(first).exceeded, null);
  assert.equal(allowance.admit(first).exceeded, null);
  assert.equal(allowance.admit(storeByHand({ ...chain(8, 2), other: ['m7'] })).exceeded, null);
  assert.equal(allowance.admit(storeByHand({ ...chain(9, 2), other: ['m8'] })).exceeded?.measure, 'validations');
});

test('many assertions in one manifest are limited, as is a manifest that is led to again and again', () => {
  assert.equal(admit(storeByHand({ single: [] }, 1000)), null);
  assert.equal(admit(storeByHand({ single: [] }, 3000))?.measure, 'assertionPairs');
  assert.equal(admit(storeByHand({ large: [], top: new Array(40).fill('large') }, 400))?.measure, 'assertionPairs');
});

test('a store whose ingredients cannot be told is refused', () => {
  const refused = [
    storeByHand({ first: ['second'], second: ['first'] }),
    storeByHand(Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`m${index}`, []]))),
    superbox('c2pa', typedSuperbox('c2ma', 'm', box('brob', Buffer.alloc(20)))),
    superbox('c2pa', manifestOf('m', superbox('c2pa.ingredient', box('cbor', Buffer.from('a1'))))),
    superbox('c2pa', manifestOf('m', superbox('c2pa.ingredient.v2', box('json', Buffer.from('{}'))))),
    superbox('c2pa'),
    storeByHand(chain(3)).subarray(0, 200),
    Buffer.alloc(0),
  ];
  for (const store of refused) {
    assert.throws(() => admit(store), Error);
    assert(exceedsChainLimits(store));
  }
  assert(!exceedsChainLimits(storeByHand(chain(3))));
});

test('whatever the bytes of a store, it is admitted or refused at once', () => {
  const genuine = storeByHand(chain(4, 2));
  const edits = fc.array(fc.record({ at: fc.nat(genuine.length - 1), byte: fc.nat(255) }), { maxLength: 8 });
  fc.assert(
    fc.property(edits, (made) => {
      const store = Buffer.from(genuine);
      for (const { at, byte } of made) store[at] = byte;
      try {
        admit(store);
      } catch (error) {
        assert(error instanceof Error);
      }
    }),
  );
});

test('versions of a file that are signed with themselves as a given parent stay a row', async () => {
  let bytes = (await signWav(author)).bytes;
  for (let version = 1; version <= 12; version += 1) {
    const source = written('version.wav', bytes);
    const signed = await signWav(author, { origin: source, components: [source], allActionsIncluded: false });
    assert.deepEqual(signed.warnings, []);
    bytes = signed.bytes;
    const { ingredients, actions } = await readManifest(bytes);
    assert.deepEqual(
      ingredients.map(({ relationship }) => relationship),
      ['parentOf'],
    );
    assert.deepEqual(
      actions.map(({ action }) => action),
      ['c2pa.opened', 'c2pa.unknown'],
    );
  }
});

test('a source that was altered under the manifest of its given parent is attached beside it, as what it is', async () => {
  const { bytes } = await signWav(author);
  const altered = Buffer.from(bytes);
  altered.write('ALTERED!', 1000, 'latin1');
  const [parent, component] = [written('parent.wav', bytes), written('altered.wav', altered)];
  const signed = await signWav(author, { origin: parent, components: [component], allActionsIncluded: false });
  assert.deepEqual(
    signed.warnings.map(({ reason }) => reason),
    ['INGREDIENT_INVALID'],
  );
  assert.equal((await readManifest(signed.bytes)).ingredients.length, 2);
});

test('all actions are said to be included of a source as it was signed, and not of one that was altered since', async () => {
  const { bytes } = await signWav(author);
  const unaltered = await signWav(author, { origin: written('unaltered.wav', bytes) });
  assert.equal((await readManifest(unaltered.bytes)).allActionsIncluded, true);
  bytes.write('ALTERED!', 1000, 'latin1');
  const altered = await signWav(author, { origin: written('altered.wav', bytes) });
  assert.equal((await readManifest(altered.bytes)).allActionsIncluded, false);
});

test('manifests that would take readers minutes are left out, whether a file carries them or they come alone', async () => {
  let store = await storeOver(null);
  for (let level = 0; level < 16; level += 1) store = await storeOver(store, 'parentOf', 'componentOf');
  const wav = await wavWith(store);
  const inPlace = { sizeBytes: store.length, read: () => Promise.resolve(store) };
  const file = written('hostile.wav', wav);
  for (const parent of [storeIngredient(store), file, { ...file, manifest: inPlace }]) {
    const { bytes, warnings } = await signWav(author, { origin: parent });
    assert.deepEqual(
      warnings.map(({ reason }) => reason),
      ['INGREDIENT_TOO_COMPLEX'],
    );
    const [ingredient, ...others] = (await readManifest(bytes)).ingredients;
    assert(others.length === 0 && ingredient?.active_manifest === undefined);
  }
});

test('the longest chain that is attached is one that the official reader reads, and the next version is signed without it', async () => {
  const longest = await signWav(author, { origin: storeIngredient(await chainOf(CHAIN_LIMITS.depth - 1)) });
  assert.deepEqual(
    longest.warnings.map(({ reason }) => reason),
    [],
  );
  await checkOutput({ path: written('longest.wav', longest.bytes).path, mediaType: 'audio/wav' }, never);

  const next = await signWav(author, { origin: written('longest.wav', longest.bytes) });
  assert.deepEqual(
    next.warnings.map(({ reason }) => reason),
    ['INGREDIENT_TOO_COMPLEX'],
  );
  await checkOutput({ path: written('next.wav', next.bytes).path, mediaType: 'audio/wav' }, never);
});

/** A WAV file with a manifest store that was made for nothing in particular. */
async function wavWith(store: Uint8Array): Promise<Buffer> {
  const source = memorySource(smallWav(), 'source.wav');
  const { plan } = riff.planEmbedding(await riff.readLayout(source, never), store.length);
  const sink = memorySink(outputSizeBytes(plan));
  await executePlan(plan, source, sink, { signal: never });
  await fillHole(plan, sink, store, never);
  return sink.bytes;
}
