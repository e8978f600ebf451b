import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { jobResultEntry } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { catalogue, warningCatalogue } from '#errors/catalogue.ts';
import { warning } from '#errors/warning.ts';
import { failedEntry, succeededEntry } from '#jobs/result-entries.ts';

describe('what became of an input is told with names of the interface', () => {
  test('as the details of a failure', () => {
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

  test('without what is inside the deployment', () => {
    for (const error of [
      new AppError('SCRATCH_FULL', { path: '/srv/inside/scratch', neededBytes: 2, freeBytes: 1, reservedBytes: 0 }),
      new AppError('OUTPUT_LINK_DANGLING', { path: '/out/a', target: '/mnt/inside' }),
      new AppError('SIGNATURE_FAILED', { problem: 'no such device: /run/inside.sock' }),
    ]) {
      const entry = failedEntry(0, error.toData());
      assert.deepEqual(entry.error_details, { reason: error.reason });
      assert.doesNotMatch(JSON.stringify(entry), /inside[^ ]/);
    }
  });

  test('as details of warnings, beside their sentences and in the same order', () => {
    const warnings = [
      warning('TEXT_SEGMENTS_UNSIGNED', { playlist: 'fr.m3u8' }),
      warning('FRAME_CUT_SHORT', { file: 'talk.mp3', missingBytes: 7 }),
    ];
    const entry = succeededEntry(3, { outputPath: '/out', warnings: structuredClone(warnings), manifestDigest: null });
    assert.deepEqual(
      entry.warnings,
      warnings.map(({ message }) => message),
    );
    assert.deepEqual(entry.warning_details, [
      { reason: 'TEXT_SEGMENTS_UNSIGNED', playlist: 'fr.m3u8' },
      { reason: 'FRAME_CUT_SHORT', file: 'talk.mp3', missing_bytes: 7 },
    ]);
    assert.deepEqual(jobResultEntry.parse(entry), entry);
    const { warning_details: _, ...ofOlderRelease } = entry;
    assert.deepEqual(jobResultEntry.parse(ofOlderRelease), ofOlderRelease);
    assert.deepEqual(succeededEntry(3, { outputPath: '/out', warnings: [], manifestDigest: null }), {
      input_index: 3,
      status: 'succeeded',
      output_path: '/out',
    });
  });

  test('and no reason is an error and a warning', () => {
    assert.deepEqual(
      Object.keys(warningCatalogue).filter((reason) => reason in catalogue),
      [],
    );
  });
});
