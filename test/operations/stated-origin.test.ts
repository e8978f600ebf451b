import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { admit, files, refusal } from './submit-request.ts';

function manyParameters(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`com.example.p${index}`, index]));
}

describe('origin and actions', () => {
  const inputs = files('/media/a.mp4', '/media/b.mp4');
  const iptc = 'http://cv.iptc.org/newscodes/digitalsourcetype/';
  const parent = { type: 'reference', reference: 'token' };
  const strength = { 'com.example.strength': { curve: [0.1, 17, null, 'ü'] }, multipleInstances: true };
  const languages = { sourceLanguage: 'en', targetLanguage: 'pt-BR' };
  const softBinding = { alg: 'com.example.watermark', blocks: [{ scope: {}, value: [1, 2] }] };

  for (const [what, params] of Object.entries({
    'a term': { digital_source_type: 'digitalCapture' },
    'the address of a term': { digital_source_type: `${iptc}trainedAlgorithmicMedia`, all_actions_included: true },
    "a term of C2PA's": { digital_source_type: 'http://c2pa.org/digitalsourcetype/empty' },
    'a term beside parents that are disabled': {
      digital_source_type: 'screenCapture',
      parent,
      parent_overrides: [{ input_index: 0 }, { input_index: 1, parent: null }],
    },
    'no term, and a parent': { digital_source_type: null, parent, actions: [{ action: 'c2pa.trimmed' }] },
    'an action of its own': { actions: [{ action: 'com.example.graded', parameters: strength }] },
    'an action with everything': {
      actions: [
        {
          action: 'c2pa.adjustedColor',
          when: '2026-11-21T09:30:00.5+01:00',
          description: 'Vintage look',
          digital_source_type: 'humanEdits',
          software_agent: { name: 'Example Grade', version: '4.2', operating_system: 'Linux' },
          parameters: strength,
        },
        { action: 'c2pa.edited', software_agent: 'Example Cut' },
      ],
    },
    'a translation': { actions: [{ action: 'c2pa.translated', parameters: languages }] },
    'conversions, with and without a parent': {
      actions: [{ action: 'c2pa.transcoded' }],
      digital_source_type: 'print',
    },
    'a watermark with what it is bound to': {
      actions: [{ action: 'c2pa.watermarked.bound' }],
      assertions: [{ label: 'c2pa.soft-binding', data: softBinding }],
    },
    'a hundred parameters': { actions: [{ action: 'c2pa.edited', parameters: manyParameters(100) }] },
    'no actions': { actions: [], all_actions_included: false },
  })) {
    test(`a request may state ${what}`, () => admit('/c2pa/video', { inputs, params }));
  }

  for (const [field, params] of [
    ['params.digital_source_type', { digital_source_type: 'digitalcapture' }],
    ['params.digital_source_type', { digital_source_type: `${iptc}softwareImage` }],
    ['params.digital_source_type', { digital_source_type: 4 }],
    ['params.all_actions_included', { all_actions_included: 'yes' }],
    ['params.actions', { actions: { action: 'c2pa.edited' } }],
    ['params.actions', { actions: Array(1001).fill({ action: 'c2pa.edited' }) }],
    ['params.actions[0].action', { actions: [{ when: '2026-11-21T09:30:00Z' }] }],
    ...[
      'created',
      'opened',
      'placed',
      'removed',
      'redacted',
      'mixed',
      'saved',
      'color_adjustments',
      'watermarked',
      'x',
    ].map(
      (name) =>
        ['params.actions[1].action', { actions: [{ action: 'c2pa.edited' }, { action: `c2pa.${name}` }] }] as const,
    ),
    ...['C2PA.edited', 'font.edited', 'cawg.x', 'edited', 'com..x', '', 'com.example.\n'].map(
      (action) => ['params.actions[0].action', { actions: [{ action }] }] as const,
    ),
    ...['yesterday', '2026-02-30T00:00:00Z', '2026-11-21', '2026-11-21T09:30:00', 5].map(
      (when) => ['params.actions[0].when', { actions: [{ action: 'c2pa.edited', when }] }] as const,
    ),
    ['params.actions[0].description', { actions: [{ action: 'c2pa.edited', description: '' }] }],
    ['params.actions[0].description', { actions: [{ action: 'c2pa.edited', description: '\ud800' }] }],
    ['params.actions[0].software_agent', { actions: [{ action: 'c2pa.edited', software_agent: { version: '1' } }] }],
    ['params.actions[0].digital_source_type', { actions: [{ action: 'c2pa.edited', digital_source_type: 'x' }] }],
    ['params.actions[0].ingredients', { actions: [{ action: 'c2pa.edited', ingredients: [] }] }],
    ...[
      'ingredients',
      'ingredientIds',
      'redacted',
      'relatedAssertions',
      'description',
      'strength',
      'c2pa.x',
      '',
      'constructor',
    ].map(
      (name) =>
        [
          `params.actions[0].parameters.${name}`,
          { actions: [{ action: 'c2pa.edited', parameters: { [name]: 1 } }] },
        ] as const,
    ),
    ['params.actions[0].parameters', { actions: [{ action: 'c2pa.edited', parameters: manyParameters(101) }] }],
    ['params.actions[0].parameters', { actions: [{ action: 'c2pa.edited', parameters: [] }] }],
    [
      'params.actions[0].parameters.multipleInstances',
      { actions: [{ action: 'c2pa.edited', parameters: { multipleInstances: 'often' } }] },
    ],
    [
      'params.actions[0].parameters.targetLanguage',
      { actions: [{ action: 'c2pa.translated', parameters: { sourceLanguage: 'en' } }] },
    ],
    [
      'params.actions[0].parameters.sourceLanguage',
      { actions: [{ action: 'c2pa.translated', parameters: { ...languages, sourceLanguage: 'Englisch!' } }] },
    ],
  ] as const) {
    test(`${JSON.stringify(params).slice(0, 100)} is refused at ${field}`, async () => {
      const found = await refusal('/c2pa/video', { inputs, params });
      assert.deepEqual(found, { reason: 'REQUEST_INVALID', code: 'VALIDATION_FAILED', field });
    });
  }

  const deep = JSON.parse(`${'['.repeat(120)}${']'.repeat(120)}`);
  for (const [field, params] of [
    ['params.actions[0]', { actions: [{ action: 'c2pa.watermarked.bound' }] }],
    ['params.actions[1]', { actions: [{ action: 'a.b' }, { action: 'a.b', parameters: { 'a.b': deep } }] }],
    ['params.actions[0]', { actions: [{ action: 'a.b', parameters: { 'a.b': '\ud800' } }] }],
    ['params.actions[0]', { actions: [{ action: 'a.b', parameters: { 'a.b': Array(100_000).fill(0) } }] }],
    ['params.actions', { actions: [{ action: 'a.b', parameters: { 'a.b': 'x'.repeat(1024 * 1024) } }] }],
  ] as const) {
    test(`what manifests cannot carry is refused at ${field}: ${JSON.stringify(params).slice(0, 60)}`, async () => {
      const found = await refusal('/c2pa/package', { inputs: [{ type: 'local_folder_path', path: '/media' }], params });
      assert.deepEqual(found, { reason: 'ACTIONS_REFUSED', code: 'VALIDATION_FAILED', field });
    });
  }

  test('media that were made anew have no parent', async () => {
    const made = { digital_source_type: 'digitalCapture' };
    const at = (inputIndex: number) => ({
      reason: 'ORIGIN_HAS_PARENT',
      code: 'VALIDATION_FAILED',
      field: 'params.digital_source_type',
      inputIndex,
    });
    assert.deepEqual(await refusal('/c2pa/video', { inputs, params: { ...made, parent } }), at(0));
    const first = { parent, parent_overrides: [{ input_index: 0 }] };
    assert.deepEqual(await refusal('/c2pa/video', { inputs, params: { ...made, ...first } }), at(1));
    const second = { parent_overrides: [{ input_index: 1, parent }] };
    assert.deepEqual(await refusal('/c2pa/video', { inputs, params: { ...made, ...second } }), at(1));
    const env = { SERVICE__SIGNING__DIGITAL_SOURCE_TYPE: 'digitalCapture' };
    await admit('/c2pa/video', { inputs, params: { parent } }, env);
  });

  test('packaging without a signature states nothing', async () => {
    const folders = [{ type: 'local_folder_path', path: '/media' }];
    for (const params of [{ digital_source_type: 'print' }, { actions: [] }, { all_actions_included: true }]) {
      assert.equal((await refusal('/package', { inputs: folders, params })).reason, 'REQUEST_INVALID');
    }
  });

  test('a configured source type or action that manifests cannot carry stops the start', async () => {
    await assert.rejects(admit('/c2pa/video', { inputs }, { SERVICE__SIGNING__DIGITAL_SOURCE_TYPE: 'camera' }));
    await assert.rejects(admit('/c2pa/video', { inputs }, { SERVICE__SIGNING__ACTIONS: 'c2pa.opened' }));
  });
});
