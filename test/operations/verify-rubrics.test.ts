import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { riff } from '#formats/formats.ts';
import { findRubrics } from '#provenance/rubrics.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

const RUBRIC = `rubric_metadata:
  name: Test rubric
  issuer: tests
  date: '2026-01-01'
  version: '1.0.0'
variables:
  $first: [c2pa.created, c2pa.opened]
expressions:
  _assertionsOf: values($args[0].assertions)
  _active: manifests[0]
  _actions: _assertionsOf(_active())[?actions != null][].actions[] || \`[]\`
---
- id: has_actions
  expression: length(_actions()) > 0
  reportText: {'true': {en: There are actions}, 'false': {en: There are no actions}}
- id: begins
  failIfMatched: true
  expression: _actions()[?!contains($first, action)].action
  reportText: {'true': {en: Begins well}, 'false': {en: 'Found {{matches}}'}}
- id: mentions_version
  expression: $expected_spec_version == "2.2"
  reportText: It is about 2.2
---
- id: warns
  warnIfMatched: true
  expression: _active().validationResults.success[].code
  reportText: {'true': {en: Nothing}, 'warn': {en: 'Saw {{matches}}'}}
- id: broken
  expression: length(
  reportText: Nothing
- id: finds
  failIfMatched: true
  expression: _actions()[?action != null].action
  reportText: {'true': {en: Nothing}, 'false': {en: 'Found {{matches}}'}}
- id: heading
  reportText: Only a text
`;

const home = temporaryFolder();
const rubricsDir = writeFiles(join(home, 'rubrics'), {
  'house-spec2.2.yml': Buffer.from(RUBRIC),
  'README.md': Buffer.from('none'),
});
let count = 0;

async function verified(bytes: Uint8Array, params: Parameters<typeof verifyInput>[2]): Promise<Verification> {
  const folder = writeFiles(join(home, String(count++)), { 'a.wav': bytes });
  const input = { type: 'local_file_path', path: join(folder, 'a.wav') } as const;
  return (await verifyInput(input, folder, params)).verification;
}

describe('rubrics', async () => {
  const signed = await signBytes(riff, smallWav());

  test('are evaluated over the crJSON of an asset', async () => {
    const { rubrics } = await verified(signed, { params: { rubrics: ['house-spec2.2'] }, rubricsDir });
    const [result, ...others] = rubrics ?? [];
    assert.deepEqual(others, []);
    assert.deepEqual([result?.rubric, result?.name, result?.version], ['house-spec2.2.yml', 'Test rubric', '1.0.0']);
    assert.deepEqual(result?.counts, { true: 3, false: 1, warn: 1, error: 1 });
    const said = Object.fromEntries(
      (result?.statements ?? []).map(({ id, result: outcome, text }) => [id, [outcome, text]]),
    );
    assert.deepEqual(said['has_actions'], ['true', 'There are actions']);
    assert.deepEqual(said['begins'], ['true', 'Begins well']);
    assert.deepEqual(said['finds'], ['false', 'Found c2pa.created']);
    assert(said['warns']?.[1]?.includes('claimSignature.validated'));
    assert.equal(said['broken']?.[0], 'error');
  });

  test('say nothing of what carries no manifest', async () => {
    const { state, rubrics } = await verified(smallWav(), { params: { rubrics: true }, rubricsDir });
    assert.deepEqual([state, rubrics], ['none', undefined]);
  });

  test('are refused that are not there, before there is a job', async () => {
    assert.deepEqual(await findRubrics(rubricsDir, true), ['house-spec2.2.yml']);
    await assert.rejects(findRubrics(rubricsDir, ['../secret']), { reason: 'RUBRIC_UNKNOWN' });
    await assert.rejects(findRubrics(undefined, true), { reason: 'RUBRICS_OFF' });
  });

  test('fail their input where their file is none', async () => {
    const broken = writeFiles(join(home, 'broken'), { 'a.yml': Buffer.from('- just\n- a list\n') });
    const failing = verified(signed, { params: { rubrics: true }, rubricsDir: broken });
    await assert.rejects(failing, { reason: 'RUBRIC_UNUSABLE' });
  });
});

test('crJSON is answered where it is asked for', async () => {
  const signed = await signBytes(riff, smallWav());
  const { crjson, state } = await verified(signed, { params: { report: 'crjson' } });
  assert.equal(state, 'valid');
  const [manifest] = (crjson as { manifests: { signature: { algorithm: string } }[] }).manifests;
  assert.equal(manifest?.signature.algorithm, 'es256');
});
