import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { UNSIGNABLE_EXTENSIONS } from '#formats/unsupported-containers.ts';
import type { OperationRequest, RequestContext } from '../operation.ts';
import { sidecarLeaves } from '../sidecar/sidecar-names.ts';
import { type ExtensionRule, validateFileInputs } from './validate-inputs.ts';
import { fileLeaf, type LeafRule } from './validate-outputs.ts';
import { validateSigning } from './validate-signing.ts';

/**
 * Checks a request to sign files. `refusalOf` refuses extensions where the manifest is embedded; a sidecar goes with a file
 * of any kind. Throws `COPY_SOURCE_WITHOUT_SIDECAR`, or what the checks of inputs and of signing throw.
 */
export async function validateFileSigning(
  request: OperationRequest,
  refusalOf: ExtensionRule,
  context: RequestContext,
): Promise<void> {
  const params = (request.params ?? {}) as C2paParams;
  const isSidecar = params.manifest === 'sidecar';
  if (!isSidecar && params.copy_source !== undefined) {
    throw new AppError('COPY_SOURCE_WITHOUT_SIDECAR', {}, { field: 'params.copy_source' });
  }
  await validateFileInputs(request.inputs, context.config, isSidecar ? refusalOfSidecar : embeddable(refusalOf));
  await validateSigning(request, isSidecar ? leavesWithSidecar(params) : fileLeaf, context);
}

function refusalOfSidecar(extension: string): string | null {
  return extension === 'c2pa'
    ? 'a ".c2pa" file is itself a manifest, and a sidecar of it would have its name. Submit the file that it belongs to'
    : null;
}

/** Refuses containers that cannot carry a manifest as well. */
function embeddable(refusalOf: ExtensionRule): ExtensionRule {
  return (extension) =>
    UNSIGNABLE_EXTENSIONS.has(extension)
      ? `a ".${extension}" file cannot carry a manifest here. Set params.manifest to "sidecar", for a manifest in a file of its own, or convert it to MP4, MOV, M4A, WAV, MP3 or FLAC`
      : refusalOf(extension);
}

function leavesWithSidecar(params: C2paParams): LeafRule {
  return (name, naming) => {
    const { copy, sidecar } = sidecarLeaves(name, naming, params.copy_source);
    return copy === null ? [sidecar] : [copy, sidecar];
  };
}
