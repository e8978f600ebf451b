import { entry } from './entry.ts';

/** What can go wrong between a plan and a signed, verified manifest. */
const IDENTITY_UNUSABLE = 'The signing identity cannot be used. The log of the service says why.';

export const provenanceErrors = {
  MANIFEST_REFUSED: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) => `The C2PA SDK could not make the manifest: ${problem}.`,
  ),
  SIGNATURE_FAILED: entry<{ problem: string }>(
    'INTERNAL_ERROR',
    ({ problem }) => `The signing key could not be used: ${problem}. The log of the service says more.`,
    {
      transient: true,
      callersSee: 'The signing key could not be used. Try again later; the log of the service says more.',
    },
  ),
  TIME_STAMP_UNAVAILABLE: entry<{ host: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ host, problem }) => `The time-stamp authority (${host}, set in signing.tsa_url) ${problem}. Try again later.`,
    {
      transient: true,
      callersSee: 'The time-stamp authority gave no time-stamp. Try again later; the log of the service says more.',
    },
  ),
  READ_BACK_FAILED: entry<{ codes: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ codes }) =>
      `The signed output was read back and is not valid (${codes.join(', ')}), so it was not delivered. Report this with the input if it happens again.`,
    { operational: true },
  ),
  IDENTITY_FILE_UNREADABLE: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) =>
      `The signing identity cannot be read from "${file}": ${problem}. Correct the path or the permissions.`,
    { callersSee: IDENTITY_UNUSABLE },
  ),
  IDENTITY_FOLDER_UNUSABLE: entry<{ folder: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ folder, problem }) =>
      `The development identity cannot be kept in "${folder}": ${problem}. Correct jobs.data_dir, or configure an identity under [signing].`,
    { callersSee: IDENTITY_UNUSABLE },
  ),
  IDENTITY_INVALID: entry<{ file: string; problems: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ file, problems }) =>
      `The signing identity in "${file}" cannot be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
    { callersSee: IDENTITY_UNUSABLE },
  ),
  IDENTITY_REPLACED: entry<{ file: string }>(
    'INTERNAL_ERROR',
    ({ file }) =>
      `The signing identity in "${file}" was replaced while the service runs, which signs with the one it started with. Restart the service.`,
  ),
  IDENTITY_EXPIRED: entry<{ notAfter: string }>(
    'INTERNAL_ERROR',
    ({ notAfter }) =>
      `A certificate of the signing identity expired on ${notAfter}. The operator of the service has to renew it and restart the service.`,
  ),
  ASSERTION_LABEL_REFUSED: entry<{ label: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ label, problem }) =>
      `The assertion label "${label}" cannot be used: ${problem}. Choose another, such as com.example.review.`,
  ),
  ASSERTION_DATA_REFUSED: entry<{ label: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ label, problem }) => `A manifest cannot carry the assertion "${label}": ${problem}.`,
  ),
  ASSERTIONS_REFUSED: entry<{ problem: string }>(
    'VALIDATION_FAILED',
    ({ problem }) => `A manifest cannot carry these assertions together: ${problem}.`,
  ),
  ASSERTIONS_TOO_COSTLY: entry<{ budget: 'time' | 'memory'; limit: number; unit: 'ms' | 'bytes' }>(
    'VALIDATION_FAILED',
    ({ budget, limit, unit }) =>
      `Checking these assertions took more than their ${budget} budget of ${unit === 'ms' ? `${limit / 1000} s` : `${limit / 1024 ** 2} MiB`}, and was stopped. State fewer or smaller assertions.`,
  ),
  ASSERTION_CHECKS_BUSY: entry<object>(
    'SERVICE_OVERLOADED',
    () => 'Too many requests with assertions are being checked. Try again in a moment.',
    { transient: true },
  ),
};
