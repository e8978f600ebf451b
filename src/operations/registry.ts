import type { z } from 'zod';
import { c2paAudioRequest } from '#contract/c2pa-audio-request.ts';
import { c2paFragmentedRequest } from '#contract/c2pa-fragmented-request.ts';
import { c2paPackageRequest } from '#contract/c2pa-package-request.ts';
import { c2paVideoRequest } from '#contract/c2pa-video-request.ts';
import { packageRequest } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { admitAudio, admitFragmented, admitPackage, admitPackageAndSign, admitVideo } from './admission.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import type { InputContext, InputOutcome, InputWork, OperationName, OperationRooms } from './operation.ts';
import { packageAndSign } from './package-and-sign.ts';
import { packageFolder } from './package-folder.ts';
import { signAudioFile } from './sign-audio.ts';
import { signPublication } from './sign-publication.ts';
import { signVideoFile } from './sign-video.ts';

/** One operation: where callers find it, what it takes, what it refuses before a job is made, and how an input is done. */
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
  /** Does one input of an admitted request, in a worker. */
  run(work: InputWork, context: InputContext, rooms: OperationRooms): Promise<InputOutcome>;
}

/** Every operation of the service. Adding one is a schema, an operation file, and an entry here. */
export const operations: readonly Operation[] = [
  {
    name: 'c2pa-video',
    path: '/c2pa/video',
    summary: 'Sign video files',
    request: c2paVideoRequest,
    admit: admitVideo,
    run: signVideoFile,
  },
  {
    name: 'c2pa-audio',
    path: '/c2pa/audio',
    summary: 'Sign audio files',
    request: c2paAudioRequest,
    admit: admitAudio,
    run: signAudioFile,
  },
  {
    name: 'c2pa-fragmented',
    path: '/c2pa/fragmented',
    summary: 'Sign fragmented publications',
    request: c2paFragmentedRequest,
    admit: admitFragmented,
    run: signPublication,
  },
  {
    name: 'c2pa-package',
    path: '/c2pa/package',
    summary: 'Package folders of media, and sign them',
    request: c2paPackageRequest,
    admit: admitPackageAndSign,
    run: packageAndSign,
  },
  {
    name: 'package',
    path: '/package',
    summary: 'Package folders of media',
    request: packageRequest,
    admit: admitPackage,
    run: packageFolder,
  },
];

/** The operation of a name. Throws OPERATION_UNKNOWN for one that a newer release has. */
export function operationNamed(name: OperationName): Operation {
  const operation = operations.find((candidate) => candidate.name === name);
  if (operation === undefined) throw new AppError('OPERATION_UNKNOWN', { operation: name });
  return operation;
}
