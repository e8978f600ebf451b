import { entry, warningEntry } from '../entry.ts';

/** Errors between a plan and a signed, verified manifest. */
const IDENTITY_UNUSABLE = 'The signing identity cannot be used. The log of the service says why.';

const notCarried = (subject: string) =>
  entry<{ problem: string }>('VALIDATION_FAILED', ({ problem }) => `A manifest cannot carry ${subject}: ${problem}.`);

export const provenanceErrors = {
  MANIFEST_REFUSED: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) => `The C2PA SDK could not make the manifest: ${problem}.`,
  ),
  SIGNATURE_FAILED: entry<{ problem: string }>(
    'INTERNAL_ERROR',
    ({ problem }) => `The signing key could not be used: ${problem}. The log of the service says more.`,
    {
      class: 'outage',
      dependencies: ['signer'],
      callersSee: 'The signing key could not be used. The log of the service says more.',
    },
  ),
  TIME_STAMP_UNAVAILABLE: entry<{ problems: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ problems }) =>
      `No authority of signing.tsa_url gave a time-stamp: ${problems.join('; ')}. The operator of the service may name another authority, or set signing.tsa_required to false.`,
    { class: 'outage', dependencies: ['time_stamp_authority'] },
  ),
  TIME_STAMP_LARGER: entry<{ host: string; answerBytes: number; maxBytes: number }>(
    'INTERNAL_ERROR',
    ({ host, answerBytes, maxBytes }) =>
      `The time-stamp of ${host} has ${answerBytes} bytes, twice more than was reserved for it (at last ${maxBytes}). Try again later.`,
    { class: 'retry' },
  ),
  READ_BACK_FAILED: entry<{ codes: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ codes }) =>
      `The signed output was read back and is not valid (${codes.join(', ')}), so it was not delivered. Report this with the input if it happens again.`,
    { class: 'service' },
  ),
  TRUST_LIST_UNUSABLE: entry<{ field: string; file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ field, file, problem }) =>
      `The trust list "${file}" (${field}) cannot be used: ${problem}. Correct the path, or replace the file.`,
  ),
  RUBRICS_OFF: entry<object>(
    'VALIDATION_FAILED',
    () => 'This deployment has no rubrics. Its operator has to set trust.rubrics_dir.',
  ),
  RUBRIC_UNKNOWN: entry<{ rubric: string; available: readonly string[]; count: number }>(
    'VALIDATION_FAILED',
    ({ rubric, available, count }) =>
      `There is no rubric "${rubric}". There are ${count}: ${available.join(', ') || 'none'}${count > available.length ? ', …' : '.'}`,
  ),
  RUBRIC_UNUSABLE: entry<{ path: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ path, problem }) =>
      `"${path}" (trust.rubrics_dir) cannot be used: ${problem}. Replace it by a rubric of C2PA's format, or remove it.`,
    { callersSee: 'A rubric of this service cannot be used. The log of the service says which, and why.' },
  ),
  MANIFEST_TOO_LARGE: entry<{ name: string; sizeBytes: number; limitBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, sizeBytes, limitBytes }) =>
      `The manifest store of "${name}" has ${sizeBytes} bytes; up to ${limitBytes} are verified. No reader takes it in reasonable time: ask whoever signed the file.`,
  ),
  MANIFEST_TOO_COMPLEX: entry<{ name: string; measure: string; value: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ name, measure, value, limit }) =>
      `The chain of manifests of "${name}" costs more to validate than is allowed (${measure}: ${value}, limit ${limit}), so it was not judged.`,
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
  IDENTITY_EXPIRED: entry<{ notAfter: string }>(
    'INTERNAL_ERROR',
    ({ notAfter }) =>
      `A certificate of the signing identity expired on ${notAfter}, so nothing can be signed with it. The operator of the service has to renew it.`,
    { class: 'outage', dependencies: ['signer'] },
  ),
  IDENTITY_AWAY: entry<{ identity: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ identity, problem }) => `The signing identity "${identity}" cannot be used now: ${problem}.`,
    { class: 'outage', dependencies: ['signer'], callersSee: IDENTITY_UNUSABLE },
  ),
  IDENTITY_ABSENT: entry<{ identity: string }>(
    'INTERNAL_ERROR',
    ({ identity }) =>
      `No node that runs has the signing identity "${identity}". The operator of the service has to configure it under [signing.identities] of a node that signs, and to start or reload that.`,
    { class: 'outage', dependencies: ['signer'], callersSee: IDENTITY_UNUSABLE },
  ),
  IDENTITY_REVOKED: entry<{ revokedAt: string }>(
    'INTERNAL_ERROR',
    ({ revokedAt }) =>
      `The certificate of the signing identity was revoked on ${revokedAt}, as its OCSP responder states, so nothing is signed with it. The operator of the service has to replace it.`,
    { class: 'outage', dependencies: ['signer'] },
  ),
  OCSP_RESPONSE_MISSING: entry<{ problem: string }>(
    'INTERNAL_ERROR',
    ({ problem }) =>
      `There is no OCSP response to staple, and signing.ocsp requires one: ${problem}. The operator of the service has to make the responder of the certificate reachable, or set signing.ocsp to "staple".`,
    {
      class: 'outage',
      dependencies: ['signer'],
      callersSee: 'Nothing can be signed without an OCSP response, and there is none. The log of the service says why.',
    },
  ),
  OCSP_IMPOSSIBLE: entry<{ file: string; problem: string; remedy: string }>(
    'INTERNAL_ERROR',
    ({ file, problem, remedy }) =>
      `signing.ocsp is "require", and no OCSP response can be fetched for the certificate in ${file}: ${problem}. ${remedy}`,
  ),
  NO_VALID_IDENTITY: entry<{ identity: string; notAfter: string }>(
    'SERVICE_UNAVAILABLE',
    ({ identity, notAfter }) =>
      `The signing identity "${identity}" ended on ${notAfter}, and nothing can be signed with it. The operator of the service has to renew it; until then jobs that need it are refused.`,
    { class: 'outage' },
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
  ASSERTIONS_REFUSED: notCarried('these assertions together'),
  ACTIONS_REFUSED: notCarried('these actions'),
  ORIGIN_HAS_PARENT: entry<{ inputIndex: number }>(
    'VALIDATION_FAILED',
    ({ inputIndex }) =>
      `The request states that input ${inputIndex} was made anew (digital_source_type), and gives it a parent. Leave one of the two out.`,
  ),
  ORIGIN_HAS_MANIFEST: entry<{ title: string }>(
    'PROCESSING_FAILED',
    ({ title }) =>
      `The request states that the media were made anew (digital_source_type), but "${title}" carries a manifest, so it was made from what that describes. Leave params.digital_source_type out, or give the file without its manifest.`,
  ),
  ASSERTIONS_TOO_COSTLY: entry<{ budget: 'time' | 'memory'; limit: number; unit: 'ms' | 'bytes' }>(
    'VALIDATION_FAILED',
    ({ budget, limit, unit }) =>
      `Checking these assertions and actions took more than their ${budget} budget of ${unit === 'ms' ? `${limit / 1000} s` : `${limit / 1024 ** 2} MiB`}, and was stopped. Give fewer or smaller ones.`,
  ),
  ASSERTION_CHECKS_BUSY: entry<object>(
    'SERVICE_OVERLOADED',
    () => 'Too many requests with assertions are being checked. Try again in a moment.',
    { class: 'retry' },
  ),
};

/** The limits of `CHAIN_LIMITS`, in words. */
const COSTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    depth: 'a count of manifests in a row',
    validations: 'a count of manifests to validate, shared ones each time,',
    validatedBytes: 'a count of bytes of manifests to validate',
    assertionPairs: 'a count of pairs of assertions to compare',
  }),
);

/** Warnings about an output's signature, ingredients and name. */
export const provenanceWarnings = {
  TIME_STAMP_MISSING: warningEntry<{ problems: readonly string[] }>(
    ({ problems }) =>
      `The signature has no time-stamp, so it becomes invalid when the certificate expires: ${problems.join('; ')}. Sign the source again once an authority of signing.tsa_url answers.`,
  ),
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
      `With the manifests of "${title}" the output would have ${COSTS.get(measure) ?? measure} (${value}) over the limit of ${limit}; "${title}" is attached without its provenance chain.`,
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

/** Errors of operations that do not take the kind of media they were given, or whose read-back timed out. */
export const operationErrors = {
  AUDIO_HAS_VIDEO: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) => `"${name}" holds a video track. The audio endpoint signs audio alone: use the video endpoint.`,
  ),
  AUDIO_CONTAINER_UNSUPPORTED: entry<{ name: string; mediaType: string; extensions: string }>(
    'INVALID_INPUT_TYPE',
    ({ name, mediaType, extensions }) =>
      `"${name}" is ${mediaType}. The audio endpoint signs ${extensions}: convert it, or use the video endpoint.`,
  ),
  VIDEO_IS_AUDIO_FILE: entry<{ name: string; mediaType: string }>(
    'INVALID_INPUT_TYPE',
    ({ name, mediaType }) => `"${name}" is ${mediaType}, which never holds video: use the audio endpoint.`,
  ),
  COPY_SOURCE_WITHOUT_SIDECAR: entry<object>(
    'VALIDATION_FAILED',
    () =>
      'copy_source says what is delivered with a sidecar, and this request asks for none. Set params.manifest to "sidecar", or leave copy_source out.',
  ),
  SIDECAR_NAME_TAKEN: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) =>
      `"${name}" is named like a manifest, and a sidecar of it would have its name. Submit the file that it belongs to; if it is none, rename it.`,
  ),
  SIDECAR_SOURCE_TEXT: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) =>
      `"${name}" begins like text, which players may read as a list of other files, and a sidecar would bind the list alone. Submit the media itself; a playlist is signed with its folder, at /v2/c2pa/fragmented.`,
  ),
  SIDECAR_SOURCE_SIGNED: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) =>
      `"${name}" carries a manifest, which a sidecar would contradict: readers look into the file first. Leave out params.manifest, so that the new manifest replaces it and keeps its provenance chain.`,
  ),
  READ_BACK_TIMED_OUT: entry<{ boundMs: number }>(
    'INTERNAL_ERROR',
    ({ boundMs }) =>
      `The official reader did not finish checking the output within ${Math.round(boundMs / 1000)} s, so it was not delivered. Submit the input again; if that repeats, look at the disk.`,
    { class: 'retry' },
  ),
};
