import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ReportFile } from '../../src/cli/report-file.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a report that cannot be written fails with its path and the problem', () => {
  const folder = temporaryFolder();
  const report = ReportFile.create(join(folder, 'report.json'), false);
  report.add({ status: 'succeeded' });
  rmSync(folder, { recursive: true });
  assert.throws(() => report.commit(), { reason: 'OUTPUT_FAILED', message: /report\.json/ });
  report.discard();
  assert.throws(() => report.add({}), { reason: 'OUTPUT_FAILED' });
});
