import { clearScratchSpaces } from '#bytes/scratch-space.ts';
import type { Config } from '#config/config.ts';
import type { InputAttempt } from '#jobs/job.ts';
import { recoverUploads } from '#outputs/s3-tasks.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';

interface StagingParts {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: Log;
}

/**
 * Removes what an attempt left behind whose process is gone: staged outputs, scratch files and uploads. Without an
 * attempt, what all left. Never rejects: what cannot be removed is logged, and stays for the next start.
 */
export async function clearStagings({ config, launcher, log }: StagingParts, attempt?: InputAttempt): Promise<void> {
  const { data_dir: dataDir, scratch_dir: dir } = config.jobs;
  const { s3 } = config.output_sinks;
  const logFailure = (error: unknown): void => {
    const ids = { job_id: attempt?.jobId, input_index: attempt?.inputIndex };
    for (const err of error instanceof AggregateError ? error.errors : [error]) {
      log.error({ ...ids, err }, 'what a lost process left could not be removed');
    }
  };
  await recoverStagings(dataDir, attempt).catch(logFailure);
  await clearScratchSpaces({ dir, dataDir }, attempt).catch(logFailure);
  if (s3 === undefined) return;
  const addresses = (await recoverUploads(s3, dataDir, attempt, launcher).catch(logFailure)) ?? [];
  if (addresses.length > 0) log.info({ addresses }, 'what a lost process had uploaded was taken back');
}
