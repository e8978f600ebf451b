import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { failedEntry } from '#jobs/job.ts';

test('the details of a failed input are named as everything else in the interface', () => {
  const error = new AppError(
    'PATTERN_NO_MATCH',
    { pattern: '*.ts', names: ['media_0.m3u8'], fileCount: 1 },
    { field: 'params.frag_pattern' },
  );
  assert.deepEqual(failedEntry(0, error.toData()).error_details, {
    pattern: '*.ts',
    names: ['media_0.m3u8'],
    file_count: 1,
    field: 'params.frag_pattern',
    reason: 'PATTERN_NO_MATCH',
  });
});
