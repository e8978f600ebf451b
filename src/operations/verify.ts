import { type VerifyRequest, verifyRequest } from '#contract/verify-request.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { findRubrics } from '#provenance/rubrics.ts';
import type { Operation, RequestContext, VerificationOutcome } from './operation.ts';
import { isFolder, requireResolver, validateAnyInputs, validateOutputs } from './validation/validate-request.ts';
import { reportLeaf } from './verification/report.ts';

/**
 * Verifies what inputs carry: reads the manifest of each, has the official reader validate it, and describes the verdict. An
 * input that could be judged succeeds, whatever the verdict.
 */
export const verify: Operation<VerificationOutcome> = {
  name: 'verify',
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
    if (inputIndex >= inputs.length) {
      const details = { inputIndex, inputCount: inputs.length };
      throw new AppError('OVERRIDE_OUT_OF_RANGE', details, { field: `${field}.input_index` });
    }
    if (given.has(inputIndex)) {
      throw new AppError('OVERRIDE_REPEATED', { inputIndex }, { field: `${field}.input_index`, inputIndex });
    }
    given.add(inputIndex);
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
