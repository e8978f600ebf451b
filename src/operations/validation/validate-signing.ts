import type { Config } from '#config/config.ts';
import type { ApiParent, ApiParentFileSource, C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { UNSIGNABLE_EXTENSIONS } from '#formats/unsupported-containers.ts';
import { statedAction } from '../ingredients.ts';
import type { OperationRequest, RequestContext } from '../operation.ts';
import { sidecarLeaves } from '../sidecar/sidecar-names.ts';
import {
  type ExtensionRule,
  fileLeaf,
  type LeafRule,
  type ReferenceLocation,
  requireResolver,
  validateFileInputs,
  validateOutputs,
} from './validate-request.ts';

/**
 * Checks what all signing operations have in common: parents and overrides, outputs, and assertions, by a dry-run
 * signature. Throws `OVERRIDE_OUT_OF_RANGE`, `OVERRIDE_REPEATED`, `ORIGIN_HAS_PARENT`, or what the checks of outputs, assertions
 * and actions throw.
 */
export async function validateSigning(
  request: OperationRequest,
  leafOf: LeafRule,
  context: RequestContext,
): Promise<void> {
  const params = (request.params ?? {}) as C2paParams;
  validateParents(params, request.inputs.length, context.config);
  validateOrigin(params, request.inputs.length);
  await validateOutputs(request, leafOf, parentSources(params), context);
  const actions = (params.actions ?? context.config.signing.actions).map(statedAction);
  await context.checkAssertions(params.assertions ?? [], context.signal, actions);
}

/** Throws `ORIGIN_HAS_PARENT` for the first input that the request says was made anew, and gives a parent. */
function validateOrigin(params: C2paParams, inputCount: number): void {
  if (params.digital_source_type === undefined || params.digital_source_type === null) return;
  const overrides = new Map((params.parent_overrides ?? []).map((override) => [override.input_index, override.parent]));
  const isGiven = (index: number): boolean => (overrides.has(index) ? overrides.get(index) : params.parent) != null;
  const inputIndex = Array.from({ length: inputCount }, (_, index) => index).find(isGiven);
  if (inputIndex === undefined) return;
  throw new AppError('ORIGIN_HAS_PARENT', { inputIndex }, { field: 'params.digital_source_type', inputIndex });
}

function validateParents(params: C2paParams, inputCount: number, config: Config): void {
  validateParent(params.parent, config, { field: 'params.parent' });
  const overridden = new Set<number>();
  for (const [index, override] of (params.parent_overrides ?? []).entries()) {
    const field = `params.parent_overrides[${index}]`;
    const { input_index: inputIndex } = override;
    if (inputIndex >= inputCount) {
      throw new AppError('OVERRIDE_OUT_OF_RANGE', { inputIndex, inputCount }, { field: `${field}.input_index` });
    }
    if (overridden.has(inputIndex)) {
      throw new AppError('OVERRIDE_REPEATED', { inputIndex }, { field: `${field}.input_index`, inputIndex });
    }
    overridden.add(inputIndex);
    validateParent(override.parent, config, { field: `${field}.parent`, inputIndex });
  }
}

function validateParent(parent: ApiParent | null | undefined, config: Config, location: ReferenceLocation): void {
  if (parent?.type !== 'file') return;
  requireResolver(parent.source, config, { ...location, field: `${location.field}.source` });
}

/** Returns the files that the parents of a request are read from: outputs must not overwrite them either. */
function parentSources({ parent, parent_overrides: overrides = [] }: C2paParams): ApiParentFileSource[] {
  return [parent, ...overrides.map((override) => override.parent)].flatMap((candidate) =>
    candidate?.type === 'file' ? [candidate.source] : [],
  );
}

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
