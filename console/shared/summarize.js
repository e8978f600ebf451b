// @ts-nocheck
// Written by "npm run docs" from src/operations/verification/summarize.ts: change that.
/** Failures that say that the media was changed. */
const MEDIA_CHANGED = /^assertion\.(?:dataHash|bmffHash|boxesHash|collectionHash)\.mismatch$/;
/** Failures of the signature itself. */
const SIGNATURE_FAILED = /^claimSignature\./;

/** Returns the verdict in one or two sentences. */
export function summarize({ state, codes, manifests, trust_list: list }                               )         {
  const [active] = manifests;
  switch (state) {
    case 'none':
      return 'No provenance information.';
    case 'trusted':
      return `Unchanged. Signed by ${signerOf(active)}, who is on ${list ?? 'a trust list of this service'}.`;
    case 'valid':
      return `Unchanged since signing. ${signerOf(active)} is on no trust list that this service knows.`;
    case 'invalid':
      return reasonOf(codes);
  }
}

function signerOf(active                                               )         {
  const { name, organization, development } = active?.signer ?? {};
  const known = organization ?? name;
  const shown = known === undefined ? 'a signer without a name' : `"${known}"`;
  return development ? `${shown} (development identity)` : shown;
}

function reasonOf(codes                       )         {
  const failures = codes.filter(({ kind, ingredient }) => kind === 'failure' && ingredient !== true);
  if (failures.some(({ code }) => MEDIA_CHANGED.test(code))) return 'Changed after signing.';
  if (failures.some(({ code }) => SIGNATURE_FAILED.test(code))) return 'Signature does not verify.';
  const [failure] = failures.filter(({ code }) => code !== 'signingCredential.untrusted');
  return failure === undefined
    ? 'The manifest could not be validated completely.'
    : `The manifest is not valid. ${failure.explanation}`;
}
