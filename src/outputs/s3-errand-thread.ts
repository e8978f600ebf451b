import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import { doErrand, type S3Errand, type S3ErrandAnswer } from './s3-errands.ts';
import type { S3OutputSettings } from './s3-sink.ts';

// The thread behind `probeBuckets` and `recoverUploads`: does one errand and ends.

assert(parentPort !== null, 'this module runs as a worker thread');
const { settings, errand } = workerData as { settings: S3OutputSettings; errand: S3Errand };
parentPort.postMessage(await answerOf());

async function answerOf(): Promise<S3ErrandAnswer> {
  try {
    return { addresses: await doErrand(settings, errand) };
  } catch (error) {
    if (error instanceof AppError) return { error: error.toData() };
    throw error;
  }
}
