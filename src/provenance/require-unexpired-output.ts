import { AppError } from '#errors/app-error.ts';

/**
 * Throws `IDENTITY_EXPIRED` where an output was read back after the end of the certificate that it had been signed with before: the
 * output is not at fault.
 */
export function requireUnexpiredOutput(problems: readonly string[]): void {
  if (!problems.includes('signingCredential.expired')) return;
  throw new AppError('IDENTITY_EXPIRED', { notAfter: new Date().toISOString() });
}
