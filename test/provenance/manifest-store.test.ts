import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { manifestIn, readManifestStore } from '#provenance/manifest-store.ts';
import { box, manifestOf, storeByHand, superbox, typedSuperbox } from './manifest-store-bytes.ts';

const assertions = superbox('c2pa.assertions');
const claim = superbox('c2pa.claim.v2');
const signature = superbox('c2pa.signature');
const parts = [assertions, claim, signature];
const storeOf = (...manifests: readonly Uint8Array[]) => superbox('c2pa', ...manifests);
const manifest = (...boxes: readonly Uint8Array[]) => storeOf(typedSuperbox('c2ma', 'm', ...boxes));

/** A description box without the toggle that says that a label follows. */
function unlabelled(part: Buffer): Buffer {
  const bytes = Buffer.from(part);
  bytes.writeUInt8(0b01, 8 + 8 + 16);
  return bytes;
}

describe('a manifest store', () => {
  test('counts with manifests and updates, each of the parts of one', () => {
    const credentials = typedSuperbox('c2vc', 'c2pa.credentials');
    const dataBoxes = typedSuperbox('c2db', 'c2pa.databoxes');
    const update = typedSuperbox('c2um', 'update', ...parts);
    const bytes = storeOf(manifestOf('first'), typedSuperbox('c2ma', 'm', ...parts, credentials, dataBoxes), update);
    assert.equal(readManifestStore(bytes).children.length, 3);
    assert.equal(manifestIn(bytes)?.label, 'update');
    assert.equal(manifestIn(bytes, 'first')?.label, 'first');
    assert.equal(manifestIn(bytes, 'none'), undefined);
    assert.equal(
      readManifestStore(manifest(assertions, superbox('c2pa.signature'), typedSuperbox('c2cl', 'c2pa.claim'))).label,
      'c2pa',
    );
  });

  const refused: Readonly<Record<string, Uint8Array>> = {
    'of another type': typedSuperbox('c2pb', 'c2pa', manifestOf('m')),
    'of another label': typedSuperbox('c2pa', 'c2pb', manifestOf('m')),
    'without a manifest': storeOf(),
    'with two manifests of one label': storeOf(manifestOf('m'), manifestOf('m')),
    'with a box that is no manifest behind': storeOf(manifestOf('m'), typedSuperbox('abcd', 'n', ...parts)),
    'with a content box': storeOf(manifestOf('m'), box('free')),
    'with a compressed manifest': storeOf(box('brob')),
    'whose manifest holds a content box': manifest(...parts, box('free')),
    'whose manifest has no assertions': manifest(claim, signature),
    'whose manifest has no claim': manifest(assertions, signature),
    'whose manifest has no signature': manifest(assertions, claim),
    'whose manifest has two claims': manifest(...parts, typedSuperbox('c2cl', 'c2pa.claim')),
    'whose manifest has two lists of assertions': manifest(assertions, ...parts),
    'with a list of assertions of another type': manifest(typedSuperbox('c2db', 'c2pa.assertions'), claim, signature),
    'with a list of assertions of another label': manifest(typedSuperbox('c2as', 'c2pa.assertionz'), claim, signature),
    'with a label that its toggles deny': manifest(unlabelled(assertions), claim, signature),
    'with a part that no reader looks for': manifest(...parts, typedSuperbox('abcd', 'c2pa.claim.v3')),
    'whose earlier manifest has no signature': storeOf(typedSuperbox('c2ma', 'n', assertions, claim), manifestOf('m')),
  };
  for (const [how, bytes] of Object.entries(refused)) {
    test(`does not count ${how}`, () => {
      assert.throws(() => readManifestStore(bytes), Error);
      assert.equal(manifestIn(bytes), undefined);
    });
  }

  test('counts as the tests make it', () => {
    assert.equal(readManifestStore(storeByHand({ first: [], second: ['first'] })).children.length, 2);
  });
});
