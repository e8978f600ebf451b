import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import { admitFileInputs, audioExtensions, type ExtensionRule, videoExtensions } from './admission-inputs.ts';
import { admitSigningParams } from './admission-signing.ts';

/** Admits a request to sign video files. */
export function admitVideo(request: OperationRequest, context: AdmissionContext): Promise<void> {
  return admitSigning(request, context, videoExtensions);
}

/** Admits a request to sign audio files. */
export function admitAudio(request: OperationRequest, context: AdmissionContext): Promise<void> {
  return admitSigning(request, context, audioExtensions);
}

async function admitSigning(
  request: OperationRequest,
  context: AdmissionContext,
  extensions: ExtensionRule,
): Promise<void> {
  admitFileInputs(request.inputs, context.config, extensions);
  admitOutput(request);
  admitSigningParams((request.params ?? {}) as C2paParams, request.inputs.length);
}

function admitOutput({ output }: OperationRequest): void {
  if (output?.type === 's3') throw new AppError('S3_OUTPUT_UNAVAILABLE', {}, { field: 'output.type' });
}
