import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import { needsOf } from '#jobs/dependencies.ts';
import type { Submission } from '#jobs/job.ts';
import { configFor } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LOCAL: ApiInputRef = { type: 'local_file_path', path: '/media/a.mp4' };
const HTTP: ApiInputRef = { type: 'remote_file_url', url: 'https://media.example/a.mp4' };
const TO_BUCKET: ApiOutputSpec = { type: 's3', bucket: 'out' };

test('inputs need the scratch folder whose sources or outputs may be copied there', () => {
  const config = configFor(temporaryFolder());
  const needScratch = (operation: Submission['operation'], inputs: readonly ApiInputRef[], output?: ApiOutputSpec) =>
    needsOf({ operation, request: { inputs, ...(output && { output }) }, sync: false }, null, config).map((needs) =>
      needs.includes('scratch_folder'),
    );
  assert.deepEqual(needScratch('c2pa-video', [LOCAL, HTTP]), [false, true]);
  assert.deepEqual(needScratch('verify', [LOCAL, HTTP]), [false, true]);
  assert.deepEqual(needScratch('c2pa-video', [LOCAL], TO_BUCKET), [true]);
  assert.deepEqual(needScratch('package', [LOCAL]), [true]);
});
