import 'reflect-metadata';
import { createPublicKey, type KeyObject } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { SigningAlgorithm } from '../signer.ts';

// Reads and makes X.509 certificates (RFC 5280). Loading the library takes 0.1 s and 6 MB (PSS), so this module is imported
// dynamically, by the signer process, and only where it makes a certificate or checks a configured one.

/** The contents of a certificate. Leaving out an optional field leaves out its extension. */
export interface CertificateContents {
  readonly commonName: string;
  readonly organization?: string | undefined;
  readonly publicKey: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly isCa?: boolean;
  readonly keyUsage?: number | undefined;
  /** Object identifiers of the extended key usages. */
  readonly extendedKeyUsages?: readonly string[];
  /** False leaves out the authority key identifier; for tests of the profile check. */
  readonly authorityKeyIdentifier?: boolean;
  /** The address of an OCSP responder. */
  readonly ocsp?: string;
  /** C2PA's assurance level 2, which limits the validity. */
  readonly assuranceLevel?: 2;
}

/** The signer of a certificate: a name, and a P-256 key. */
export interface Issuer {
  readonly commonName: string;
  readonly organization?: string | undefined;
  readonly privateKey: KeyObject;
}

/** The extension with C2PA's assurance level, and its value for level 2: an object identifier in DER (C2PA Certificate Policy 0.2). */
const ASSURANCE_LEVEL = '1.3.6.1.4.1.62558.3';
const ASSURANCE_LEVEL_2 = '060a2b0601040183e85e0314';

/** Bits of the key usage extension (RFC 5280 §4.2.1.3). */
export const KEY_USAGE = x509.KeyUsageFlags;

const ISSUER_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };

/** Makes an X.509 v3 certificate signed with ECDSA and SHA-256. Returns its DER. */
export async function issueCertificate(contents: CertificateContents, issuer: Issuer): Promise<Buffer> {
  const { notBefore, notAfter } = contents;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: distinguishedName(contents),
    issuer: distinguishedName(issuer),
    notBefore,
    notAfter,
    publicKey: publicKeyOf(contents.publicKey),
    signingKey: issuer.privateKey.toCryptoKey(ISSUER_ALGORITHM, false, ['sign']),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: await extensionsOf(contents, issuer),
  });
  return Buffer.from(certificate.rawData);
}

/** The contents of a request for a certificate. */
export interface RequestContents extends Pick<Issuer, 'commonName' | 'organization'> {
  readonly keyUsage: number;
  /** Object identifiers of the extended key usages. */
  readonly extendedKeyUsages: readonly string[];
}

const CURVES: Readonly<Partial<Record<SigningAlgorithm, string>>> = { es256: 'P-256', es384: 'P-384', es512: 'P-521' };

/** Returns how a request for a key is signed. Authorities know RSA by PKCS #1 v1.5, whatever the key signs later. */
function requestAlgorithmOf(algorithm: SigningAlgorithm) {
  if (algorithm === 'ed25519') return { name: 'Ed25519' };
  const hash = `SHA-${algorithm.slice(2)}`;
  const namedCurve = CURVES[algorithm];
  return namedCurve === undefined ? { name: 'RSASSA-PKCS1-v1_5', hash } : { name: 'ECDSA', namedCurve, hash };
}

/** The key that a request is for. It signs with PKCS #1 v1.5, or as `r ‖ s`; it may be in a device. */
export interface RequestKey {
  readonly publicKey: KeyObject;
  sign(data: Uint8Array): Promise<Buffer>;
}

/** Makes a request for a certificate (PKCS #10, RFC 2986), signed with the key that it is for. Returns PEM. */
export async function requestCertificate(
  { commonName, organization, keyUsage, extendedKeyUsages }: RequestContents,
  key: RequestKey,
  algorithm: SigningAlgorithm,
): Promise<string> {
  const signing = requestAlgorithmOf(algorithm);
  const publicKey = key.publicKey.toCryptoKey(signing, true, ['verify']);
  const subtle = {
    exportKey: async () => key.publicKey.export({ type: 'spki', format: 'der' }),
    sign: async (_algorithm: object, _key: object, data: ArrayBuffer) => {
      return Uint8Array.from(await key.sign(new Uint8Array(data))).buffer;
    },
  };
  const request = await x509.Pkcs10CertificateRequestGenerator.create(
    {
      name: distinguishedName({ commonName, organization }),
      // The private key is none of WebCrypto. The library looks at its algorithm alone.
      keys: { publicKey, privateKey: publicKey },
      signingAlgorithm: signing,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(keyUsage, true),
        new x509.ExtendedKeyUsageExtension([...extendedKeyUsages]),
      ],
    },
    { subtle } as never,
  );
  return `${request.toString('pem')}\n`;
}

function distinguishedName({ commonName, organization }: Pick<Issuer, 'commonName' | 'organization'>): x509.JsonName {
  return [...(organization === undefined ? [] : [{ O: [organization] }]), { CN: [commonName] }];
}

async function extensionsOf(contents: CertificateContents, issuer: Issuer): Promise<x509.Extension[]> {
  const { isCa = false, keyUsage, extendedKeyUsages, authorityKeyIdentifier = true, ocsp, assuranceLevel } = contents;
  const issuerKey = publicKeyOf(createPublicKey(issuer.privateKey));
  return [
    new x509.BasicConstraintsExtension(isCa, undefined, true),
    await x509.SubjectKeyIdentifierExtension.create(publicKeyOf(contents.publicKey)),
    ...(keyUsage === undefined ? [] : [new x509.KeyUsagesExtension(keyUsage, true)]),
    ...(extendedKeyUsages === undefined ? [] : [new x509.ExtendedKeyUsageExtension([...extendedKeyUsages])]),
    ...(authorityKeyIdentifier ? [await x509.AuthorityKeyIdentifierExtension.create(issuerKey)] : []),
    ...(ocsp === undefined ? [] : [new x509.AuthorityInfoAccessExtension({ ocsp: [ocsp] })]),
    ...(assuranceLevel === 2
      ? [new x509.Extension(ASSURANCE_LEVEL, false, Buffer.from(ASSURANCE_LEVEL_2, 'hex'))]
      : []),
  ];
}

function publicKeyOf(key: KeyObject): x509.PublicKey {
  return new x509.PublicKey(key.export({ type: 'spki', format: 'der' }));
}

/** The fields of a certificate that node:crypto does not show. */
interface CertificateFields {
  /** False before version 3 of X.509, which introduced extensions. */
  readonly hasExtensions: boolean;
  /** Bits of `KEY_USAGE`; null without that extension. */
  readonly keyUsage: number | null;
  readonly hasAuthorityKeyIdentifier: boolean;
  /** The basic constraints alone; `X509Certificate.ca` of node:crypto looks at the key usage as well. */
  readonly isCa: boolean;
  /** C2PA's assurance level: 1 where the certificate states none. */
  readonly assuranceLevel: 1 | 2;
}

/** Reads the fields of a certificate from its DER. Returns null where it, or one of its extensions, is malformed. */
export function readCertificateFields(der: Buffer): CertificateFields | null {
  try {
    const certificate = new x509.X509Certificate(new Uint8Array(der));
    return {
      hasExtensions: certificate.extensions.length > 0,
      keyUsage: certificate.getExtension(x509.KeyUsagesExtension)?.usages ?? null,
      hasAuthorityKeyIdentifier: certificate.getExtension(x509.AuthorityKeyIdentifierExtension) !== null,
      isCa: certificate.getExtension(x509.BasicConstraintsExtension)?.ca ?? false,
      assuranceLevel: derOfExtension(certificate, ASSURANCE_LEVEL) === ASSURANCE_LEVEL_2 ? 2 : 1,
    };
  } catch {
    // The library's reason says nothing that an operator could use.
    return null;
  }
}

/** Returns the value of an extension as DER in hexadecimal digits; empty where there is none. */
function derOfExtension(certificate: x509.X509Certificate, oid: string): string {
  return Buffer.from(certificate.getExtension(oid)?.value ?? new ArrayBuffer(0)).toString('hex');
}
