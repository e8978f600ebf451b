import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { C2paParams } from '#contract/signing.ts';
import { warning } from '#errors/warning.ts';
import type { OpeningContext } from '#inputs/input-opener.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import {
  assignRoles,
  type GivenOrigin,
  givenIngredient,
  givenOrigin,
  type ManifestParams,
  manifestRequestOf,
} from '#operations/ingredients.ts';
import type { IngredientSource } from '#provenance/manifest-request.ts';

test('a parent that is not there is told from an input that is not: by where it stands in the request', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-parents-'));
  t.after(() => rm(folder, { recursive: true }));
  const scratch = new ScratchSpace({ dir: folder, dataDir: folder }, { jobId: 'job', inputIndex: 1, attempt: 1 });
  const inputs = new InputResolver({ local_file_path: localFileOpener({ roots: undefined, protectedPaths: [] }) });
  const parent = { type: 'file', source: { type: 'local_file_path', path: join(folder, 'nowhere.mp4') } } as const;
  for (const [params, field] of [
    [{ parent }, 'params.parent.source'],
    [
      { parent_overrides: [{ input_index: 0 }, { input_index: 1, parent }] },
      'params.parent_overrides[1].parent.source',
    ],
  ] as const) {
    const overridden = { ...params, parent_overrides: [...(params.parent_overrides ?? [])] };
    const opening = givenIngredient(overridden, 1, inputs, { signal: new AbortController().signal, scratch });
    await assert.rejects(opening, (error: { reason: string; location: { field?: string } }) => {
      assert.deepEqual([error.reason, error.location.field], ['SOURCE_NOT_FOUND', field]);
      return true;
    });
  }
});

const unsigned: IngredientSource = { kind: 'plain', title: 'film.mp4', mediaType: 'video/mp4' };
const signed: IngredientSource = { kind: 'file', path: '/media/film.mp4', title: 'film.mp4', mediaType: 'video/mp4' };
const reference: IngredientSource = { kind: 'reference', reference: 'asset-4711' };
const remote = warning('REMOTE_MANIFEST_NOT_FETCHED', { title: 'film.mp4' });

const parent: GivenOrigin = { parent: { ingredient: reference, warnings: [] } };
const digitalSourceType = 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture';
const creation = { kind: 'created', digitalSourceType } as const;
const requested: GivenOrigin = { creation, isDefault: false };
const configured: GivenOrigin = { creation, isDefault: true };

function rolesOf(ingredient: IngredientSource, given: GivenOrigin): [unknown, unknown] {
  const { origin, components } = assignRoles({ ingredient, warnings: [] }, given).roles;
  return [origin, components];
}

test('a source is opened, a given parent before it, and the source placed where it has a manifest', () => {
  assert.deepEqual(rolesOf(unsigned, null), [unsigned, []]);
  assert.deepEqual(rolesOf(signed, null), [signed, []]);
  assert.deepEqual(rolesOf(unsigned, parent), [reference, []]);
  assert.deepEqual(rolesOf(signed, parent), [reference, [signed]]);
});

test('media were created where the request says so, and as configured where their manifest does not say otherwise', () => {
  assert.deepEqual(rolesOf(unsigned, requested), [creation, []]);
  assert.deepEqual(rolesOf(unsigned, configured), [creation, []]);
  assert.deepEqual(rolesOf(signed, configured), [signed, []]);
  assert.throws(() => rolesOf(signed, requested), { reason: 'ORIGIN_HAS_MANIFEST', code: 'PROCESSING_FAILED' });
});

test('the configured source type counts where a request has none of its own and gives no parent', async () => {
  const services = {
    inputs: new InputResolver({}),
    manifestDefaults: { digital_source_type: 'digitalCapture', actions: [] },
  };
  const given = (params: C2paParams | undefined): Promise<GivenOrigin> =>
    givenOrigin(params, 0, services, { signal: new AbortController().signal } as OpeningContext);
  assert.deepEqual(await given(undefined), configured);
  assert.deepEqual(await given({ digital_source_type: digitalSourceType }), requested);
  assert.equal(await given({ digital_source_type: null }), null);
  assert.deepEqual(await given({ parent: { type: 'reference', reference: 'asset-4711' } }), parent);
});

test('warnings about the source are told once, whatever it becomes', () => {
  for (const given of [null, parent, requested]) {
    assert.deepEqual(assignRoles({ ingredient: unsigned, warnings: [remote] }, given).warnings, [remote]);
  }
});

test('all actions are said to be included only where that is known or stated, and never of an altered source', () => {
  const isIncluded = (given: GivenOrigin, params: ManifestParams, isHistoryKnown = true): boolean => {
    const { roles, warnings } = assignRoles({ ingredient: unsigned, warnings: [] }, given);
    return manifestRequestOf(
      { roles: { ...roles, isHistoryKnown }, warnings },
      { identity: 'default', params },
      { actions: [] },
    ).allActionsIncluded;
  };
  const actions = [{ action: 'c2pa.trimmed' }];
  assert.equal(isIncluded(null, {}), true);
  assert.equal(isIncluded(null, { all_actions_included: false }), false);
  for (const given of [null, parent, requested]) {
    assert.equal(isIncluded(given, { actions }), false);
    assert.equal(isIncluded(given, { actions, all_actions_included: true }), true);
    assert.equal(isIncluded(given, { actions, all_actions_included: true }, false), false);
  }
  assert.equal(isIncluded(parent, {}), false);
  assert.equal(isIncluded(requested, {}), false);
});

test('configured actions are stated where the request states none', () => {
  const ingredients = assignRoles({ ingredient: unsigned, warnings: [] }, null);
  const defaults = { actions: [{ action: 'c2pa.published' }] };
  const stated = (params: ManifestParams | undefined) =>
    manifestRequestOf(ingredients, { identity: 'default', params }, defaults).statedActions;
  assert.deepEqual(stated(undefined), [{ action: 'c2pa.published' }]);
  assert.deepEqual(stated({ actions: [] }), []);
  const given = { action: 'c2pa.edited', software_agent: 'Example Cut', digital_source_type: 'digitalCapture' };
  assert.deepEqual(stated({ actions: [given] }), [
    { action: 'c2pa.edited', softwareAgent: { name: 'Example Cut' }, digitalSourceType },
  ]);
});
