import type { C2paParams } from '#contract/signing.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import { admitFileInputs, admitFolderInputs, audioExtensions, videoExtensions } from './admission-inputs.ts';
import { admitOutputs, fileLeaf, folderLeaf, type LeafRule } from './admission-output.ts';
import { admitSigningParams, parentSources } from './admission-signing.ts';

/** Admits a request to sign video files. */
export async function admitVideo(request: OperationRequest, context: AdmissionContext): Promise<void> {
  await admitFileInputs(request.inputs, context.config, videoExtensions);
  await admitSigning(request, fileLeaf, context);
}

/** Admits a request to sign audio files. */
export async function admitAudio(request: OperationRequest, context: AdmissionContext): Promise<void> {
  await admitFileInputs(request.inputs, context.config, audioExtensions);
  await admitSigning(request, fileLeaf, context);
}

/** Admits a request to sign fragmented publications. Which files they consist of is settled when they are read. */
export async function admitFragmented(request: OperationRequest, context: AdmissionContext): Promise<void> {
  await admitFolderInputs(request.inputs, context.config);
  await admitSigning(request, folderLeaf, context);
}

/** Admits a request to package folders of media. What they hold is settled when they are read. */
export async function admitPackage(request: OperationRequest, context: AdmissionContext): Promise<void> {
  await admitFolderInputs(request.inputs, context.config);
  await admitOutputs(request, folderLeaf, [], context);
}

/** Admits a request to package folders of media and sign them. */
export async function admitPackageAndSign(request: OperationRequest, context: AdmissionContext): Promise<void> {
  await admitFolderInputs(request.inputs, context.config);
  await admitSigning(request, folderLeaf, context);
}

/** Admits what all signing operations have in common, once the inputs are. */
async function admitSigning(request: OperationRequest, leafOf: LeafRule, context: AdmissionContext): Promise<void> {
  const params = (request.params ?? {}) as C2paParams;
  admitSigningParams(params, request.inputs.length, context.config);
  await admitOutputs(request, leafOf, parentSources(params), context);
  await context.checkAssertions(params.assertions ?? [], context.signal);
}
