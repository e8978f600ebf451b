import { type VerifyRequest, verifyRequest } from '#contract/verify-request.ts';
import type { Operation, VerificationOutcome } from './operation.ts';
import { isFolder } from './validation/validate-inputs.ts';
import { validateVerification } from './validation/validate-verification.ts';
import { verifyFile } from './verification/verify-file.ts';
import { verifyFolder } from './verification/verify-folder.ts';

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
  run: (work, context, services) =>
    isFolder(work.input) ? verifyFolder(work, context, services) : verifyFile(work, context, services),
};
