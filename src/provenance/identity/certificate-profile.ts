import type { KeyObject, X509Certificate } from 'node:crypto';
import { itemAt } from '#errors/assert.ts';
import type { ProfileDeviation } from '../signing-identity.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MIN_RSA_BITS = 2048;

/** The access method of a responder for the status of a certificate (RFC 5280 §4.2.2.1), and its name in node:crypto. */
const OCSP = { oid: '1.3.6.1.5.5.7.48.1', name: 'OCSP - URI' };

/** The longest validity of a leaf, by C2PA's assurance level (C2PA Certificate Policy 0.2). */
const VALIDITY_LIMITS = {
  1: { oid: '1.3.6.1.4.1.62558.3.10', maxDays: 366 },
  2: { oid: '1.3.6.1.4.1.62558.3.20', maxDays: 90 },
} as const;

/**
 * Object identifiers of extended key usages (RFC 5280 §4.2.1.12; the last two are C2PA's own for claim
 * signers, and Microsoft's).
 */
export const EXTENDED_KEY_USAGE = {
  any: '2.5.29.37.0',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  codeSigning: '1.3.6.1.5.5.7.3.3',
  emailProtection: '1.3.6.1.5.5.7.3.4',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  ocspSigning: '1.3.6.1.5.5.7.3.9',
  documentSigning: '1.3.6.1.5.5.7.3.36',
  c2paClaimSigning: '1.3.6.1.4.1.62558.2.1',
  microsoftC2paSigning: '1.3.6.1.4.1.311.76.59.1.9',
} as const;

/** The usages of which a leaf needs one; readers refuse leaves with none of them. */
const CLAIM_SIGNING_USAGES: readonly string[] = [
  EXTENDED_KEY_USAGE.emailProtection,
  EXTENDED_KEY_USAGE.documentSigning,
  EXTENDED_KEY_USAGE.c2paClaimSigning,
];

/**
 * Returns what keeps a chain from signing claims, each with its remedy (C2PA 2.2 §14.5.1, "Certificate Profile"; RFC
 * 5280); an empty list where nothing does. Trust is not judged here.
 */
export async function certificateProblems(
  chain: readonly X509Certificate[],
  publicKey: KeyObject,
  now: Date,
): Promise<string[]> {
  const [leaf] = chain;
  if (leaf === undefined) return ['it holds no certificate'];
  if (!leaf.publicKey.equals(publicKey)) {
    const fitting = chain.findIndex((certificate) => certificate.publicKey.equals(publicKey));
    if (fitting > 0)
      return [
        `the private key fits certificate ${fitting + 1}, not the first. Put the leaf first, then what certifies it`,
      ];
    return [
      'the private key does not belong to the first certificate. Use the key that the certificate was requested with',
    ];
  }
  return [
    ...(await leafProblems(leaf)),
    ...keyProblems(publicKey),
    ...chainProblems(chain),
    ...validityProblems(chain, now),
  ];
}

/**
 * Returns where a leaf deviates from C2PA's certificate policy, although it signs: readers with C2PA's trust list refuse it, while
 * others accept it.
 */
export async function profileDeviations(leaf: X509Certificate): Promise<ProfileDeviation[]> {
  const deviations: ProfileDeviation[] = [];
  const { c2paClaimSigning } = EXTENDED_KEY_USAGE;
  if (!leaf.keyUsage?.includes(c2paClaimSigning)) {
    const problem = 'the extended key usage does not include C2PA claim signing';
    const remedy = 'have it issued with that usage beside emailProtection or documentSigning';
    deviations.push({ oid: c2paClaimSigning, problem, remedy });
  }
  const { readCertificateFields } = await import('./x509.ts');
  const level = readCertificateFields(leaf.raw)?.assuranceLevel ?? 1;
  const { oid, maxDays } = VALIDITY_LIMITS[level];
  if (leaf.validToDate.getTime() - leaf.validFromDate.getTime() > maxDays * DAY_MS) {
    const problem = `it is valid for longer than the ${maxDays} days of assurance level ${level}`;
    deviations.push({ oid, problem, remedy: `have it issued for at most ${maxDays} days` });
  }
  if (!leaf.infoAccess?.includes(`${OCSP.name}:`)) {
    const problem = 'its authority information access names no OCSP responder, so that nobody learns of a revocation';
    deviations.push({ oid: OCSP.oid, problem, remedy: 'have it issued with the address of a responder' });
  }
  return deviations;
}

async function leafProblems(leaf: X509Certificate): Promise<string[]> {
  const { KEY_USAGE, readCertificateFields } = await import('./x509.ts');
  const fields = readCertificateFields(leaf.raw);
  if (fields === null) return ['the extensions of the leaf are malformed. Have it issued again'];
  const { hasExtensions, keyUsage, hasAuthorityKeyIdentifier, isCa } = fields;
  const problems: string[] = [];
  if (!hasExtensions)
    problems.push('the leaf has no extensions, as before version 3 of X.509. Request one of version 3');
  if (isCa) problems.push('the leaf is a certificate authority. Have it issue a certificate for signing, and use that');
  else if (leaf.verify(leaf.publicKey)) {
    problems.push('the leaf is self-signed, which readers refuse. Have an authority issue it, if only one of your own');
  } else if (!hasAuthorityKeyIdentifier) {
    problems.push('the leaf has no authority key identifier. Have it issued again with that extension');
  }
  if (!/^O=./m.test(leaf.subject))
    problems.push('the subject of the leaf has no organisation (O). Request one with it: readers show that name');
  if (keyUsage === null || (keyUsage & KEY_USAGE.digitalSignature) === 0) {
    problems.push('the key usage of the leaf does not include digitalSignature. Have it issued again with it');
  } else if ((keyUsage & KEY_USAGE.keyCertSign) !== 0) {
    problems.push(
      'the key usage of the leaf includes keyCertSign, which is for authorities. Have it issued again without it',
    );
  }
  return [...problems, ...extendedUsageProblems(leaf.keyUsage ?? [])];
}

function extendedUsageProblems(usages: readonly string[]): string[] {
  const { any, timeStamping, ocspSigning } = EXTENDED_KEY_USAGE;
  if (usages.length === 0) return ['the leaf has no extended key usage. Have it issued with emailProtection'];
  if (usages.includes(any))
    return ['the extended key usage of the leaf includes anyExtendedKeyUsage, which readers refuse'];
  if (usages.includes(timeStamping) || usages.includes(ocspSigning)) {
    return [
      'the extended key usage of the leaf includes timeStamping or OCSPSigning, which must stand alone. Use a certificate for signing',
    ];
  }
  if (usages.some((usage) => CLAIM_SIGNING_USAGES.includes(usage))) return [];
  return [
    `the extended key usage of the leaf (${usages.join(', ')}) does not allow to sign claims. Request emailProtection, which the C2PA claim-signing usage may stand beside`,
  ];
}

function keyProblems({ asymmetricKeyDetails }: KeyObject): string[] {
  const { modulusLength } = asymmetricKeyDetails ?? {};
  if (modulusLength === undefined || modulusLength >= MIN_RSA_BITS) return [];
  return [`the RSA key has ${modulusLength} bits. At least ${MIN_RSA_BITS} are needed`];
}

function chainProblems(chain: readonly X509Certificate[]): string[] {
  return chain.slice(1).flatMap((issuer, index) => {
    const certificate = itemAt(chain, index);
    const name = `certificate ${index + 2}`;
    if (!certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey)) {
      return [
        `${name} did not issue certificate ${index + 1}. Order the chain from the leaf up, and leave out what does not belong to it`,
      ];
    }
    return issuer.ca ? [] : [`${name} issued certificate ${index + 1}, but is no certificate authority`];
  });
}

/** An expired chain is no problem of this kind: the service runs on with one, and signs nothing. */
function validityProblems(chain: readonly X509Certificate[], now: Date): string[] {
  return chain.flatMap((certificate, index) => {
    const name = `certificate ${index + 1}`;
    if (certificate.validFromDate > now)
      return [`${name} is not valid before ${certificate.validFromDate.toISOString()}. Check the clock, or wait`];
    return [];
  });
}
