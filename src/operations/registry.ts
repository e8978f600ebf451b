import type { z } from 'zod';
import { c2paAudioRequest } from '#contract/c2pa-audio-request.ts';
import { c2paVideoRequest } from '#contract/c2pa-video-request.ts';
import { admitAudio, admitVideo } from './admission.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import type { OperationName } from './operation.ts';

/** One operation as callers see it: where it is, what it takes, and what it refuses before a job is made. */
export interface Operation {
  readonly name: OperationName;
  /** Under `/v2` and `/v2/sync`. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly request: z.ZodType<OperationRequest>;
  /**
   * Rejects with an AppError for everything that can be told from the request to be wrong. It opens no input: what
   * an input's bytes say is settled when the input is processed.
   */
  admit(request: OperationRequest, context: AdmissionContext): Promise<void>;
}

/** Every operation of the service. Adding one is a schema, an operation file, and an entry here. */
export const operations: readonly Operation[] = [
  {
    name: 'c2pa-video',
    path: '/c2pa/video',
    summary: 'Sign video files',
    request: c2paVideoRequest,
    admit: admitVideo,
  },
  {
    name: 'c2pa-audio',
    path: '/c2pa/audio',
    summary: 'Sign audio files',
    request: c2paAudioRequest,
    admit: admitAudio,
  },
];
