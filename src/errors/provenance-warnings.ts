import { warningEntry } from './entry.ts';

/** What to know of an output's ingredients, and of its name. */
export const provenanceWarnings = {
  EXTENSION_REPLACED: warningEntry<{ name: string; extension: string }>(
    ({ name, extension }) =>
      `"${name}" does not hold what its extension says: the output has the extension .${extension}.`,
  ),
  INGREDIENT_INVALID: warningEntry<{ title: string; codes: readonly string[]; codeCount: number }>(
    ({ title, codes, codeCount }) =>
      `The manifest of "${title}" does not validate (${codes.join(', ')}${codeCount > codes.length ? ', …' : ''}); it is attached with these findings.`,
  ),
  INGREDIENT_UNREADABLE: warningEntry<{ title: string; problem: string }>(
    ({ title, problem }) =>
      `The manifest of "${title}" could not be read (${problem}); "${title}" is attached without its provenance chain.`,
  ),
  INGREDIENT_NOT_VALIDATED: warningEntry<{ title: string }>(
    ({ title }) => `The manifest of "${title}" could not be validated; it is attached without validation results.`,
  ),
  INGREDIENT_TOO_LARGE: warningEntry<{ title: string; sizeBytes: number; limitBytes: number }>(
    ({ title, sizeBytes, limitBytes }) =>
      `The manifest of "${title}" has ${sizeBytes} bytes, over the limit of ${limitBytes}; "${title}" is attached without its provenance chain.`,
  ),
  REMOTE_MANIFEST_NOT_FETCHED: warningEntry<{ title: string }>(
    ({ title }) =>
      `"${title}" names a manifest at a remote address; it was not fetched, so its provenance is not part of the chain.`,
  ),
  PARENT_NOT_READ: warningEntry<{ title: string; cause: string; problem: string }>(
    ({ title, problem }) => `The parent "${title}" could not be read whole: ${problem}`,
  ),
  SOURCE_NOT_SEARCHED: warningEntry<{ file: string; cause: string; problem: string }>(
    ({ file, problem }) => `The source "${file}" was packaged, but could not be searched for a manifest: ${problem}`,
  ),
};
