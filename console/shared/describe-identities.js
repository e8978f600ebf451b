// @ts-nocheck
// Written by "npm run docs" from src/provenance/describe-identities.ts: change that.
import { codeOf, cut, deltasIn, KINDS, texts } from './describe-report.js';

// Identity assertions (CAWG Identity Assertion 1.2) vouch for an asset beside the signer of its manifest. Readers are made to
// leave them alone where they judge the manifest: with them they call manifests less trusted, or invalid, that are in order
// (CAWG §7.1 has the manifest validated first). They are read once more, for themselves, and described here.

export const IDENTITY_LABEL = 'cawg.identity';
const MAX_DESCRIBED = 10;
const MAX_CHARACTERS = 300;

/** Returns the largest number of identity assertions that a manifest of a report has. */
export function mostIdentities({ manifests }                )         {
  return Math.max(0, ...Object.values(manifests).map((manifest) => ownIdentities(manifest).length));
}

function ownIdentities({ assertions = [] }                  ) {
  return assertions.filter(({ label }) => label.startsWith(IDENTITY_LABEL));
}

/**
 * Adds to a description what reports say of identity assertions, by the lists of publishers that they were made with: one report for
 * each manifest of the asset, or null where it has none. Nobody vouches for an asset that is not valid, or for one of several
 * manifests only, nor for an ingredient that is not valid. `allowed` names the only list of allowed certificates; undefined where
 * there are several.
 */
export function withIdentities                                                                       (
  described           ,
  reports                                    ,
  allowed                    ,
)            {
  const read = reports.map((report) => readingOf(report, allowed));
  const isSame = new Set(read.map(({ active, identitiesIn }) => JSON.stringify(identitiesIn(active)))).size === 1;
  const isValid = described.state === 'valid' || described.state === 'trusted';
  const manifests = described.manifests.map((manifest, index) => {
    const { label, assertions } = manifest;
    // Whoever makes a manifest chooses its label: another one of the asset may have the same.
    const [identities = [], ...others] = read
      .filter(({ labels }) => labels.includes(label))
      .map((each) => each.identitiesIn(label));
    const isOne = others.every((other) => JSON.stringify(other) === JSON.stringify(identities));
    const hasUnreadable = identities.length === 0 && assertions.some((assertion) => assertion.label === IDENTITY_LABEL);
    const known = hasUnreadable ? [UNREADABLE] : identities;
    if (known.length === 0) return manifest;
    const isIntact = index === 0 ? isSame : !isInvalidIngredient(label, described);
    return { ...manifest, identity_assertions: isValid && isOne && isIntact ? known : known.map(unverified) };
  });
  return { ...described, manifests, codes: [...described.codes, ...codesOf(read.flatMap(({ findings }) => findings))] };
}

/** The identities in the manifests that one report describes, each by the findings of that report. */
function readingOf(report                       , allowed                    ) {
  const { manifests = {}, active_manifest: active = '', validation_results: results } = report ?? {};
  const findings = findingsOf(results);
  const identitiesIn = (label        )                     =>
    identitiesOf(label, ownIdentities(manifests[label] ?? {}), findings, allowed);
  return { active, labels: Object.keys(manifests), findings, identitiesIn };
}

/** Tells whether a manifest is of an ingredient that was not valid when it was added, or may have been changed since. */
function isInvalidIngredient(label        , { manifests, codes }                                           )          {
  const isChanged = codes.some(
    ({ code, kind, ingredient }) => kind === 'failure' && ingredient && !code.endsWith('.untrusted'),
  );
  const references = manifests.flatMap(({ ingredients }) => ingredients).filter(({ manifest }) => manifest === label);
  return isChanged || references.some(({ state }) => state === 'invalid');
}

const UNREADABLE                   = { state: 'unverified', kind: 'other', roles: [] };

/** A finding about an identity assertion. */

/** Findings about the bytes of the assertion: the reading of the manifest has them. */
const OF_MANIFEST = /^(?:assertion|hashedURI)\./;

function findingsOf(results                               )                    {
  const all = [results?.activeManifest ?? {}, ...deltasIn(results)].flatMap((findings                   , index) =>
    KINDS.flatMap((kind) =>
      (findings[kind] ?? []).map((finding) => ({ ...finding, kind, ...(index > 0 && { ingredient: true }) })),
    ),
  );
  return all.filter(({ url, code }) => url?.split('/').at(-1)?.startsWith(IDENTITY_LABEL) && !OF_MANIFEST.test(code));
}

function identitiesOf(
  manifest        ,
  own                                  ,
  findings                            ,
  allowed                    ,
)                     {
  const about = findings.filter(({ url }) => url === `self#jumbf=/c2pa/${manifest}/c2pa.assertions/${IDENTITY_LABEL}`);
  const described = own
    .slice(0, MAX_DESCRIBED)
    .map(({ data }) => describeIdentity((data ?? {})                    , about, allowed));
  // The reader names all assertions of a manifest alike in what it finds: of several nobody knows which is in order.
  return own.length === 1 ? described : described.map(unverified);
}

/** The data of an identity assertion, as the reader shows it: that of an aggregator in its own terms where it can be read. */

const SIGNATURE_KINDS                                                = new Map(
  Object.entries({
    'cawg.x509.cose': 'x509',
    'cawg.identity_claims_aggregation': 'claims_aggregation',
  }),
);

function describeIdentity(
  { signer_payload: payload, signature_info: signer, issuer, c2paAsset = payload }                  ,
  findings                            ,
  allowed                    ,
)                   {
  const kind = SIGNATURE_KINDS.get(c2paAsset?.sig_type ?? '') ?? 'other';
  const failures = failuresIn(findings).slice(0, MAX_DESCRIBED);
  const state = stateOf(kind, findings, failures);
  const isSigned = state === 'trusted' || state === 'valid';
  const roles = (c2paAsset?.role ?? []).filter((role) => typeof role === 'string').slice(0, MAX_DESCRIBED);
  return {
    state,
    kind,
    roles: roles.map((role) => cut(role, MAX_CHARACTERS)),
    ...(isSigned && texts({ name: signer?.common_name, organization: signer?.issuer }, MAX_CHARACTERS)),
    ...(kind === 'claims_aggregation' && texts({ issuer: nameOf(issuer) }, MAX_CHARACTERS)),
    ...(state === 'trusted' && texts({ trust_list: listIn(findings) ?? allowed }, MAX_CHARACTERS)),
    ...(failures.length > 0 && { failures }),
  };
}

const UNTRUSTED = 'cawg.x509.credential.untrusted';
/** Failures of checks that could not be made: of a certificate that has ended nobody knows whether it had when it signed. */
const UNCHECKED                    = [
  'cawg.x509.signature.outside_validity',
  'cawg.ica.did_unavailable',
  'cawg.identity.sig_type.unknown',
];
const REQUIRED = ['cawg.identity.well-formed', 'cawg.x509.signature.validated'];

function failuresIn(findings                            )           {
  const failed = findings.filter(({ kind, code }) => kind === 'failure' && code !== UNTRUSTED);
  return [...new Set(failed.map(({ code }) => code))];
}

function stateOf(
  kind                          ,
  findings                            ,
  failures                   ,
)                            {
  if (failures.some((code) => !UNCHECKED.includes(code))) return 'invalid';
  const succeeded = findings.filter((finding) => finding.kind === 'success').map(({ code }) => code);
  // Statements of aggregators are never taken for verified: no list of them is known here.
  if (kind !== 'x509' || failures.length > 0 || !REQUIRED.every((code) => succeeded.includes(code)))
    return 'unverified';
  return succeeded.includes('cawg.x509.credential.trusted') ? 'trusted' : 'valid';
}

/** Returns the name of the list in the reader's words; those of a certificate that is on a list itself leave it out. */
function listIn(findings                            )                     {
  const words = findings.find(({ code }) => code === 'cawg.x509.credential.trusted')?.explanation ?? '';
  return /found in \[(.+)\] trust anchors/.exec(words)?.[1];
}

/** Returns the identifier of an issuer, which is text or has one (W3C Verifiable Credentials 2.0 §4.7). */
function nameOf(issuer         )          {
  return typeof issuer === 'object' && issuer !== null ? (issuer                    ).id : issuer;
}

/** Takes back what was found of an identity. */
function unverified({ kind, roles, issuer }                  )                   {
  return { state: 'unverified', kind, roles, ...(issuer !== undefined && { issuer }) };
}

function codesOf(findings                            )                   {
  const same = Map.groupBy(findings, ({ code, ingredient }) => `${code} ${ingredient}`);
  return [...same.values()].slice(0, MAX_DESCRIBED * KINDS.length).map((group) => {
    const [{ kind, ingredient }] = group                     ;
    return { ...codeOf(group, kind, MAX_CHARACTERS), ...(ingredient === true && { ingredient: true }) };
  });
}
