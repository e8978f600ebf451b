import { AppError } from '#errors/app-error.ts';
import { serveParent, tellParent } from '#processes/parent.ts';
import { runS3Task, type S3TaskAnswer, type S3TaskRequest } from '../s3-tasks.ts';

// The process behind `probeBuckets` and `recoverUploads`: runs one task.

serveParent(async (request: S3TaskRequest) => tellParent({ answer: await answerOf(request) }));

async function answerOf({ settings, task }: S3TaskRequest): Promise<S3TaskAnswer> {
  try {
    return { addresses: await runS3Task(settings, task) };
  } catch (error) {
    if (error instanceof AppError) return { error: error.toData() };
    throw error;
  }
}
