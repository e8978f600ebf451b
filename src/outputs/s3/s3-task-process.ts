import { AppError } from '#errors/app-error.ts';
import { runS3Task, type S3TaskAnswer, type S3TaskRequest } from '../s3-tasks.ts';

// The process behind `probeBuckets` and `recoverUploads`: runs one task and exits, at once when the service exits.

process.once('disconnect', () => process.exit());
process.once('message', async (request: S3TaskRequest) => {
  const answer = await answerOf(request);
  process.send?.(answer, undefined, undefined, () => process.disconnect());
});

async function answerOf({ settings, task }: S3TaskRequest): Promise<S3TaskAnswer> {
  try {
    return { addresses: await runS3Task(settings, task) };
  } catch (error) {
    if (error instanceof AppError) return { error: error.toData() };
    throw error;
  }
}
