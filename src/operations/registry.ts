import {
  c2paAudioRequest,
  c2paFragmentedRequest,
  c2paPackageRequest,
  c2paVideoRequest,
} from '#contract/c2pa-requests.ts';
import { packageRequest } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { AUDIO_EXTENSIONS, AUDIO_ONLY_EXTENSIONS, VIDEO_EXTENSIONS } from '#formats/formats.ts';
import type { InputOutcome, Operation, OperationName } from './operation.ts';
import {
  folderLeaf,
  validateFileSigning,
  validateFolderInputs,
  validateOutputs,
  validateSigning,
} from './validation/validate-request.ts';
import { verify } from './verify.ts';

// The service process validates requests by these definitions, and runs nothing. The work of an operation is therefore
// imported by `run`, in a worker, when the first input of the operation comes.

/** Signs video files. An MP4 that holds audio only is taken too; MP3, WAV and FLAC belong to the audio operation. */
export const signVideo: Operation<InputOutcome> = {
  name: 'c2pa-video',
  path: '/c2pa/video',
  summary: 'Sign video files',
  request: c2paVideoRequest,
  validateRequest: (request, context) => validateFileSigning(request, refusalOfAudio, context),
  async run(work, context, services) {
    const { refuseAudioContainer, signFile } = await import('./sign-file.ts');
    return signFile(work, context, services, refuseAudioContainer);
  },
};

function refusalOfAudio(extension: string): string | null {
  return AUDIO_ONLY_EXTENSIONS.has(extension) ? `".${extension}" is audio. Use the audio endpoint` : null;
}

/** Signs audio files: MP3, WAV, FLAC, or an MP4 without a video track. */
export const signAudio: Operation<InputOutcome> = {
  name: 'c2pa-audio',
  path: '/c2pa/audio',
  summary: 'Sign audio files',
  request: c2paAudioRequest,
  validateRequest: (request, context) => validateFileSigning(request, refusalOfVideo, context),
  async run(work, context, services) {
    const { refuseVideo, signFile } = await import('./sign-file.ts');
    return signFile(work, context, services, refuseVideo);
  },
};

function refusalOfVideo(extension: string): string | null {
  if (!VIDEO_EXTENSIONS.has(extension)) return null;
  return `the audio endpoint signs ${[...AUDIO_EXTENSIONS].join(', ')}. Use the video endpoint for ".${extension}"`;
}

/** Signs fragmented publications. */
export const signFragmented: Operation<InputOutcome> = {
  name: 'c2pa-fragmented',
  path: '/c2pa/fragmented',
  summary: 'Sign fragmented publications',
  request: c2paFragmentedRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    await validateSigning(request, folderLeaf, context);
  },
  async run(work, context, services) {
    const { signFolder } = await import('./sign-fragmented.ts');
    return signFolder(work, context, services);
  },
};

/** Packages folders of media as HLS and DASH over the same segments, and signs the publications. */
export const packageAndSign: Operation<InputOutcome> = {
  name: 'c2pa-package',
  path: '/c2pa/package',
  summary: 'Package folders of media, and sign them',
  request: c2paPackageRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    await validateSigning(request, folderLeaf, context);
  },
  async run(work, context, services) {
    const { packageAndSignFolder } = await import('./package-and-sign.ts');
    return packageAndSignFolder(work, context, services);
  },
};

/** Packages folders of media as HLS and DASH over the same segments. */
export const packageFolder: Operation<InputOutcome> = {
  name: 'package',
  path: '/package',
  summary: 'Package folders of media',
  request: packageRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    await validateOutputs(request, folderLeaf, [], context);
  },
  async run(work, context, services) {
    const { packageOneFolder } = await import('./package-folder.ts');
    return packageOneFolder(work, context, services);
  },
};

/** Every operation of the service. ARCHITECTURE.md lists what a further one takes. */
export const operations: readonly Operation[] = [
  signVideo,
  signAudio,
  signFragmented,
  packageAndSign,
  packageFolder,
  verify,
];

/** Returns the operation of a name. Throws `OPERATION_UNKNOWN` for one that only a newer release has. */
export function operationNamed(name: OperationName): Operation {
  const operation = operations.find((candidate) => candidate.name === name);
  if (operation === undefined) throw new AppError('OPERATION_UNKNOWN', { operation: name });
  return operation;
}
