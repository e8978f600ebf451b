import { entry } from './entry.ts';

/** What can go wrong between a plan and a signed, verified manifest. */
export const provenanceErrors = {
  MANIFEST_REFUSED: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) => `The C2PA SDK could not make the manifest: ${problem}.`,
  ),
  SIGNATURE_FAILED: entry<{ problem: string }>(
    'INTERNAL_ERROR',
    ({ problem }) => `The signing key could not be used: ${problem}. The log of the service says more.`,
    { transient: true },
  ),
  READ_BACK_FAILED: entry<{ codes: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ codes }) =>
      `The signed output was read back and is not valid (${codes.join(', ')}), so it was not delivered. Report this with the input if it happens again.`,
  ),
  IDENTITY_FILE_UNREADABLE: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) => `The signing identity cannot be read from "${file}": ${problem}. Correct the path or the permissions.`,
  ),
  IDENTITY_FOLDER_UNUSABLE: entry<{ folder: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ folder, problem }) =>
      `The development identity cannot be kept in "${folder}": ${problem}. Correct jobs.data_dir, or configure an identity under [signing].`,
  ),
  IDENTITY_INVALID: entry<{ file: string; problems: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ file, problems }) =>
      `The signing identity in "${file}" cannot be used:\n${problems.map((problem) => `  - ${problem}`).join('\n')}`,
  ),
};
