import type { C2paParams } from '#contract/signing.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import { admitFileInputs, audioExtensions, type ExtensionRule, videoExtensions } from './admission-inputs.ts';
import { admitFileOutputs } from './admission-output.ts';
import { admitSigningParams, parentSources } from './admission-signing.ts';

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
  const params = (request.params ?? {}) as C2paParams;
  admitFileInputs(request.inputs, context.config, extensions);
  admitSigningParams(params, request.inputs.length);
  await admitFileOutputs(request, parentSources(params), context);
  await context.checkAssertions(params.assertions ?? [], context.signal);
}
