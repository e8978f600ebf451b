import type { S3Client } from '@aws-sdk/client-s3';
import { callRecorder } from '#telemetry/call-recorder.ts';

/** Measures what a client asks for, attempts that failed included, until the answer begins: `s3 PutObject`. */
export function measureCalls(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = 'unknown' }) =>
      (args) =>
        callRecorder.measure(`s3 ${commandName.replace(/Command$/, '')}`, () => next(args)),
    { step: 'initialize', priority: 'high', name: 'measureCalls' },
  );
}
