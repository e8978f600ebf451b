import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { RubricResult } from '#contract/verification.ts';
import { evaluateRubrics } from '#provenance/rubrics.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const HEAD = 'rubric_metadata: {name: Test rubric}\n---\n';
const crJson = { manifests: [{ label: 'urn:c2pa:1', codes: ['a', 'b'], none: [], count: 2, zero: 0, empty: '' }] };
const home = temporaryFolder();
let count = 0;

/** The folder of a rubric `a.yml`. */
function folderOf(text: string): string {
  return writeFiles(join(home, String(count++)), { 'a.yml': Buffer.from(text) });
}

function evaluated(text: string): Promise<RubricResult[]> {
  return evaluateRubrics(folderOf(text), ['a.yml'], crJson);
}

async function resultOf(fields: object): Promise<{ result: string; text: string }> {
  const [rubric] = await evaluated(`${HEAD}- ${JSON.stringify({ id: 'a', ...fields })}\n`);
  const [statement] = rubric?.statements ?? [];
  assert(statement !== undefined);
  return statement;
}

describe('a statement of a rubric', () => {
  const VALUES = [
    ['manifests[0].codes', true],
    ['manifests[0].none', false],
    ['manifests[0].label', true],
    ['manifests[0].empty', false],
    ['manifests[0].count', true],
    ['manifests[0].zero', false],
    ['manifests[0]', true],
    ['manifests[0].unknown', false],
    ['length(manifests) > 0', true],
    ['length(manifests) > 5', false],
  ] as const;

  for (const [expression, isMatched] of VALUES) {
    test(`is judged by whether ${expression} matches`, async () => {
      const [plain, failing, warning] = await Promise.all([
        resultOf({ expression }),
        resultOf({ expression, failIfMatched: true }),
        resultOf({ expression, warnIfMatched: true }),
      ]);
      const results = [plain.result, failing.result, warning.result];
      assert.deepEqual(results, isMatched ? ['true', 'false', 'warn'] : ['false', 'true', 'true']);
    });
  }

  test('has the text of its result, and never that of another', async () => {
    const passed = { expression: 'length(manifests) > 0' };
    const found = { expression: 'manifests', warnIfMatched: true };
    const failed = { false: { en: 'Failed' } };
    assert.equal((await resultOf({ ...passed, reportText: failed })).text, '');
    assert.equal((await resultOf({ ...passed, reportText: { ...failed, default: { en: 'Other' } } })).text, 'Other');
    assert.equal((await resultOf({ ...found, reportText: failed })).text, 'Failed');
  });

  test('has a bounded text, however often it names its matches', async () => {
    const reportText = '{{matches}}'.repeat(80_000);
    const { result, text } = await resultOf({ expression: 'manifests[0].codes', failIfMatched: true, reportText });
    assert.deepEqual([result, text.slice(0, 8), text.length], ['false', 'a, ba, b', 500]);
    assert.equal((await resultOf({ id: 'i'.repeat(100_000), expression: '1 == 1' })).result, 'true');
  });
});

describe('a rubric that cannot be used', () => {
  const rejected = (folder: string, files = ['a.yml']) =>
    assert.rejects(evaluateRubrics(folder, files, crJson), { reason: 'RUBRIC_UNUSABLE' });

  test('is one that judges nothing', async () => {
    await rejected(folderOf(HEAD));
    await rejected(folderOf(`${HEAD}- {id: a, reportText: A heading}\n`));
  });

  test('is one with a condition and no expression', () =>
    rejected(folderOf(`${HEAD}- {id: a, expression: 1 == 1}\n- {id: b, expresion: 1 == 2, failIfMatched: true}\n`)));

  test('is a FIFO, a device or a folder, which nothing is read of', async () => {
    const folder = folderOf(HEAD);
    execFileSync('mkfifo', [join(folder, 'fifo.yml')]);
    symlinkSync('/dev/zero', join(folder, 'device.yml'));
    writeFiles(join(folder, 'folder.yml'), {});
    for (const name of ['fifo.yml', 'device.yml', 'folder.yml']) await rejected(folder, [name]);
  });

  test('is one whose results no answer can hold', async () => {
    const description = 'd'.repeat(400);
    const statements = Array.from({ length: 1000 }, (_, id) => ({ id: `${id}`, expression: '1 == 1', description }));
    await rejected(folderOf(`${HEAD}${JSON.stringify(statements)}\n`));
    const few = folderOf(`${HEAD}${JSON.stringify(statements.slice(0, 50))}\n`);
    assert.equal((await evaluateRubrics(few, ['a.yml'], crJson)).length, 1);
    await rejected(few, Array<string>(20).fill('a.yml'));
  });
});

test('a rubric may be a link, as deployments mount files', async () => {
  const folder = folderOf(`${HEAD}- {id: a, expression: 1 == 1}\n`);
  symlinkSync('a.yml', join(folder, 'b.yml'));
  const [linked] = await evaluateRubrics(folder, ['b.yml'], crJson);
  assert.deepEqual([linked?.rubric, linked?.counts.true], ['b.yml', 1]);
});
