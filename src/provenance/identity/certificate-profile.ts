import type { KeyObject, X509Certificate } from 'node:crypto';
import { EXTENDED_KEY_USAGE, KEY_USAGE } from './certificate.ts';
import { readCertificateFields } from './certificate-fields.ts';
import type { SigningAlgorithm } from './signer.ts';

const MIN_RSA_BITS = 2048;

/** What a leaf may be for; readers refuse leaves that are for none of these. */
const CLAIM_SIGNING_USAGES: readonly string[] = [
  EXTENDED_KEY_USAGE.emailProtection,
  EXTENDED_KEY_USAGE.documentSigning,
  EXTENDED_KEY_USAGE.c2paClaimSigning,
];

const CURVES: Readonly<Record<string, string>> = { es256: 'prime256v1', es384: 'secp384r1', es512: 'secp521r1' };

/**
 * What keeps a chain from signing claims, each with its remedy (C2PA 2.2 §14.5.1, "Certificate Profile"; RFC 5280).
 * An empty list: the chain is fit. Trust is not judged here.
 */
export function certificateProblems(
  chain: readonly X509Certificate[],
  key: KeyObject,
  algorithm: SigningAlgorithm,
  now: Date,
): string[] {
  const [leaf] = chain;
  if (leaf === undefined) return ['it holds no certificate'];
  if (!leaf.checkPrivateKey(key)) {
    const fitting = chain.findIndex((certificate) => certificate.checkPrivateKey(key));
    if (fitting > 0)
      return [
        `the private key fits certificate ${fitting + 1}, not the first. Put the leaf first, then what certifies it`,
      ];
    return [
      'the private key does not belong to the first certificate. Use the key that the certificate was requested with',
    ];
  }
  return [
    ...leafProblems(leaf),
    ...keyProblems(leaf.publicKey, algorithm),
    ...chainProblems(chain),
    ...validityProblems(chain, now),
  ];
}

function leafProblems(leaf: X509Certificate): string[] {
  const { version, keyUsage, hasAuthorityKeyIdentifier, isCa } = readCertificateFields(leaf.raw);
  const problems: string[] = [];
  if (version !== 3) problems.push(`the leaf is an X.509 v${version} certificate. Request one of version 3`);
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

function keyProblems(publicKey: KeyObject, algorithm: SigningAlgorithm): string[] {
  const { modulusLength = 0, namedCurve } = publicKey.asymmetricKeyDetails ?? {};
  if (algorithm.startsWith('ps') && modulusLength < MIN_RSA_BITS) {
    return [`the RSA key has ${modulusLength} bits. At least ${MIN_RSA_BITS} are needed`];
  }
  const curve = CURVES[algorithm];
  return curve === undefined || curve === namedCurve
    ? []
    : [`${algorithm} needs a key on ${curve}, not ${namedCurve ?? 'none'}`];
}

function chainProblems(chain: readonly X509Certificate[]): string[] {
  return chain.slice(1).flatMap((issuer, index) => {
    const certificate = chain[index] as X509Certificate;
    const place = `certificate ${index + 2}`;
    if (!certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey)) {
      return [
        `${place} did not issue certificate ${index + 1}. Order the chain from the leaf up, and leave out what does not belong to it`,
      ];
    }
    return issuer.ca ? [] : [`${place} issued certificate ${index + 1}, but is no certificate authority`];
  });
}

function validityProblems(chain: readonly X509Certificate[], now: Date): string[] {
  return chain.flatMap((certificate, index) => {
    const name = `certificate ${index + 1}`;
    if (certificate.validToDate < now) return [`${name} expired on ${certificate.validToDate.toISOString()}. Renew it`];
    if (certificate.validFromDate > now)
      return [`${name} is not valid before ${certificate.validFromDate.toISOString()}. Check the clock, or wait`];
    return [];
  });
}
