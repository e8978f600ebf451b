import {
  c2paAudioRequest,
  c2paFragmentedRequest,
  c2paPackageRequest,
  c2paVideoRequest,
} from '#contract/c2pa-requests.ts';
import { packageRequest } from '#contract/package-request.ts';
import { type VerifyRequest, verifyRequest } from '#contract/verify-request.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { AUDIO_EXTENSIONS, AUDIO_ONLY_EXTENSIONS, VIDEO_EXTENSIONS } from '#formats/formats.ts';
import { findRubrics } from '#provenance/rubrics.ts';
import type { InputOutcome, Operation, OperationName, RequestContext, VerificationOutcome } from './operation.ts';
import { reportLeaf } from './output-names.ts';
import {
  folderLeaf,
  isFolder,
  requireResolver,
  validateAnyInputs,
  validateFileSigning,
  validateFolderInputs,
  validateInputIndex,
  validateOutputs,
  validateSigning,
  validateTracks,
} from './validation/validate-request.ts';

// The service process validates requests by these definitions, and runs nothing. The work of an operation is therefore
// imported by `run`, in a worker, when the first input of the operation comes.

/** Signs video files, and an MP4 that holds audio alone; formats that never hold video belong to the audio operation. */
export const signVideo: Operation<InputOutcome> = {
  name: 'c2pa-video',
  signs: true,
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

/** Signs audio files: formats that never hold video, or an MP4 without a video track. */
export const signAudio: Operation<InputOutcome> = {
  name: 'c2pa-audio',
  signs: true,
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
  signs: true,
  path: '/c2pa/fragmented',
  summary: 'Sign fragmented publications',
  request: c2paFragmentedRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    await validateSigning(request, folderLeaf, context);
  },
  async run(work, context, services) {
    const { signFragmentedFolder } = await import('./sign-fragmented-folder.ts');
    return signFragmentedFolder(work, context, services);
  },
};

/** Packages folders of media as HLS and DASH over the same segments, and signs the publications. */
export const packageAndSign: Operation<InputOutcome> = {
  name: 'c2pa-package',
  signs: true,
  path: '/c2pa/package',
  summary: 'Package folders of media, and sign them',
  request: c2paPackageRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    validateTracks(request);
    await validateSigning(request, folderLeaf, context);
  },
  async run(work, context, services) {
    const { packageAndSignFolder } = await import('./package-and-sign.ts');
    return packageAndSignFolder(work, context, services);
  },
};

/** Packages folders of media as HLS and DASH over the same segments. */
export const packageWithoutSigning: Operation<InputOutcome> = {
  name: 'package',
  signs: false,
  path: '/package',
  summary: 'Package folders of media',
  request: packageRequest,
  async validateRequest(request, context) {
    await validateFolderInputs(request.inputs, context.config);
    validateTracks(request);
    await validateOutputs(request, folderLeaf, [], context);
  },
  async run(work, context, services) {
    const { packageFolder } = await import('./package-folder.ts');
    return packageFolder(work, context, services);
  },
};

/**
 * Verifies what inputs carry: reads the manifest of each, has the official reader validate it, and describes the verdict. An
 * input that could be verified succeeds, whatever the verdict.
 */
export const verify: Operation<VerificationOutcome> = {
  name: 'verify',
  signs: false,
  path: '/verify',
  summary: 'Verify files and publications',
  request: verifyRequest,
  validateRequest: (request, context) => validateVerification(request as VerifyRequest, context),
  async run(work, context, services) {
    if (isFolder(work.input)) {
      const { verifyFolder } = await import('./verification/verify-folder.ts');
      return verifyFolder(work, context, services);
    }
    const { verifyFile } = await import('./verification/verify-file.ts');
    return verifyFile(work, context, services);
  },
};

/** Inputs of a request for detailed reports, each of which may have half a megabyte. */
const MAX_DETAILED_INPUTS = 200;

/**
 * Checks a request to verify: its inputs, its sidecars, and where reports are written. Throws `OVERRIDE_OUT_OF_RANGE`,
 * `OVERRIDE_REPEATED`, `REPORTS_TOO_MANY`, or what the checks of inputs and outputs throw.
 */
async function validateVerification(request: VerifyRequest, context: RequestContext): Promise<void> {
  const { inputs, output, params } = request;
  await validateAnyInputs(inputs, context.config);
  validateSidecars(request, context);
  if (params?.rubrics !== undefined) await findRubrics(context.config.trust.rubrics_dir, params.rubrics);
  if (params?.report !== undefined && params.report !== 'summary' && inputs.length > MAX_DETAILED_INPUTS) {
    const details = { report: params.report, count: inputs.length, limit: MAX_DETAILED_INPUTS };
    throw new AppError('REPORTS_TOO_MANY', details, { field: 'params.report' });
  }
  const sidecars = (params?.sidecars ?? []).map(({ source }) => source);
  if (output) await validateOutputs(request, (name) => [reportLeaf(name)], sidecars, context);
}

function validateSidecars({ inputs, params }: VerifyRequest, { config }: RequestContext): void {
  const given = new Set<number>();
  for (const [index, { input_index: inputIndex, source }] of (params?.sidecars ?? []).entries()) {
    const field = `params.sidecars[${index}]`;
    validateInputIndex(inputIndex, inputs.length, given, `${field}.input_index`);
    const input = itemAt(inputs, inputIndex);
    if (isFolder(input)) {
      throw new AppError(
        'INPUT_IS_FOLDER',
        { type: input.type, inputIndex },
        { field: `${field}.input_index`, inputIndex },
      );
    }
    requireResolver(source, config, { field: `${field}.source`, inputIndex });
  }
}

/** Every operation of the service. ARCHITECTURE.md lists what a further one takes. */
export const operations: readonly Operation[] = [
  signVideo,
  signAudio,
  signFragmented,
  packageAndSign,
  packageWithoutSigning,
  verify,
];

/** Returns the operation of a name. Throws `OPERATION_UNKNOWN` for one that only a newer release has. */
export function operationNamed(name: OperationName): Operation {
  const operation = operations.find((candidate) => candidate.name === name);
  if (operation === undefined) throw new AppError('OPERATION_UNKNOWN', { operation: name });
  return operation;
}
