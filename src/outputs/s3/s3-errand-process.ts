import { AppError } from '#errors/app-error.ts';
import { doErrand, type S3ErrandAnswer, type S3ErrandOrder } from './s3-errands.ts';

// The process behind `probeBuckets` and `recoverUploads`: does one errand and ends, at once where the service does.

process.once('disconnect', () => process.exit());
process.once('message', async (order: S3ErrandOrder) => {
  const answer = await answerOf(order);
  process.send?.(answer, undefined, undefined, () => process.disconnect());
});

async function answerOf({ settings, errand }: S3ErrandOrder): Promise<S3ErrandAnswer> {
  try {
    return { addresses: await doErrand(settings, errand) };
  } catch (error) {
    if (error instanceof AppError) return { error: error.toData() };
    throw error;
  }
}
