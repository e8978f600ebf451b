import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { DER_TAG, derBitString, derElement, derExplicit, derInteger, derOid, derSequence, derTime } from './der.ts';

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Bits of the key usage extension, first bit first (RFC 5280 §4.2.1.3). */
export const KEY_USAGE = { digitalSignature: 0x80, keyEncipherment: 0x20, keyCertSign: 0x04, cRLSign: 0x02 } as const;

/** Extended key usages (RFC 5280 §4.2.1.12; the last is C2PA's own for claim signers). */
export const EXTENDED_KEY_USAGE = {
  any: '2.5.29.37.0',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  codeSigning: '1.3.6.1.5.5.7.3.3',
  emailProtection: '1.3.6.1.5.5.7.3.4',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  ocspSigning: '1.3.6.1.5.5.7.3.9',
  documentSigning: '1.3.6.1.5.5.7.3.36',
  c2paClaimSigning: '1.3.6.1.4.1.62558.2.1',
} as const;

const SERIAL_NUMBER_BYTES = 16;

/** What a certificate says. Leaving out an optional field leaves out its extension. */
export interface CertificateContents {
  readonly commonName: string;
  readonly organization?: string;
  readonly publicKey: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly isCa?: boolean;
  readonly keyUsage?: number;
  /** Object identifiers of the extended key usages. */
  readonly extendedKeyUsages?: readonly string[];
  /** False leaves out the authority key identifier; for tests of the profile check. */
  readonly authorityKeyIdentifier?: boolean;
}

/** Who signs a certificate: a name, and a P-256 key. */
export interface Issuer {
  readonly commonName: string;
  readonly organization?: string;
  readonly privateKey: KeyObject;
}

/** Makes an X.509 v3 certificate (RFC 5280 §4.1) signed with ECDSA and SHA-256; returns its DER. */
export function issueCertificate(contents: CertificateContents, issuer: Issuer): Buffer {
  const algorithm = derSequence(derOid(OID.ecdsaWithSha256));
  const unsigned = derSequence(
    derExplicit(0, derInteger(Buffer.of(2))),
    derInteger(randomBytes(SERIAL_NUMBER_BYTES)),
    algorithm,
    distinguishedName(issuer),
    derSequence(derTime(contents.notBefore), derTime(contents.notAfter)),
    distinguishedName(contents),
    contents.publicKey.export({ type: 'spki', format: 'der' }),
    derExplicit(3, derSequence(...extensions(contents, issuer))),
  );
  return derSequence(unsigned, algorithm, derBitString(sign('sha256', unsigned, issuer.privateKey)));
}

/** A certificate's DER as PEM. */
export function pemOf(der: Uint8Array): string {
  const lines = Buffer.from(der).toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function distinguishedName({ commonName, organization }: { commonName: string; organization?: string }): Buffer {
  const attributes = [
    ...(organization === undefined ? [] : [{ type: OID.organization, value: organization }]),
    { type: OID.commonName, value: commonName },
  ];
  return derSequence(
    ...attributes.map(({ type, value }) =>
      derElement(DER_TAG.set, derSequence(derOid(type), derElement(DER_TAG.utf8String, Buffer.from(value)))),
    ),
  );
}

function extensions(contents: CertificateContents, issuer: Issuer): Buffer[] {
  const { isCa = false, keyUsage, extendedKeyUsages, authorityKeyIdentifier = true } = contents;
  const written = [
    extension(OID.basicConstraints, true, derSequence(...(isCa ? [derElement(DER_TAG.boolean, Buffer.of(0xff))] : []))),
    extension(OID.subjectKeyIdentifier, false, derElement(DER_TAG.octetString, keyIdentifier(contents.publicKey))),
  ];
  if (keyUsage !== undefined) {
    const unusedBits = Math.clz32(keyUsage & -keyUsage) === 32 ? 0 : 31 - Math.clz32(keyUsage & -keyUsage);
    written.push(extension(OID.keyUsage, true, derBitString(Buffer.of(keyUsage), unusedBits)));
  }
  if (extendedKeyUsages !== undefined) {
    written.push(extension(OID.extendedKeyUsage, false, derSequence(...extendedKeyUsages.map(derOid))));
  }
  if (authorityKeyIdentifier) {
    const identifier = keyIdentifier(createPublicKey(issuer.privateKey));
    written.push(extension(OID.authorityKeyIdentifier, false, derSequence(derElement(0x80, identifier))));
  }
  return written;
}

function extension(oid: string, critical: boolean, value: Buffer): Buffer {
  const flag = critical ? [derElement(DER_TAG.boolean, Buffer.of(0xff))] : [];
  return derSequence(derOid(oid), ...flag, derElement(DER_TAG.octetString, value));
}

/** SHA-1 of the key's bits is the usual identifier (RFC 5280 §4.2.1.2); nothing of its security rests on it. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}
