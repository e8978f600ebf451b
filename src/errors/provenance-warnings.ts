import { warningEntry } from './entry.ts';

/** The limits of `CHAIN_LIMITS`, in words. */
const COSTS: Readonly<Record<string, string>> = {
  depth: 'a count of manifests in a row',
  validations: 'a count of manifests to validate, shared ones each time,',
  validatedBytes: 'a count of bytes of manifests to validate',
  assertionPairs: 'a count of pairs of assertions to compare',
};

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
  INGREDIENT_TOO_COMPLEX: warningEntry<{ title: string; measure: string; value: number; limit: number }>(
    ({ title, measure, value, limit }) =>
      `With the manifests of "${title}" the output would have ${COSTS[measure] ?? measure} (${value}) over the limit of ${limit}; "${title}" is attached without its provenance chain.`,
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
