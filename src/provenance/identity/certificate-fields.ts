import { DER_TAG, type DerElement, derElements } from './der.ts';

/** What node:crypto does not tell of a certificate. */
export interface CertificateFields {
  /** 1, 2 or 3, as people count. */
  readonly version: number;
  /** The first byte of the key usage bits, most significant bit first; null without that extension. */
  readonly keyUsage: number | null;
  readonly hasAuthorityKeyIdentifier: boolean;
  /** What the basic constraints say; `X509Certificate.ca` looks at the key usage as well. */
  readonly isCa: boolean;
}

const VERSION_TAG = 0xa0;
const EXTENSIONS_TAG = 0xa3;
/** The contents of the object identifiers 2.5.29.15, 2.5.29.19 and 2.5.29.35. */
const KEY_USAGE_OID = '551d0f';
const BASIC_CONSTRAINTS_OID = '551d13';
const AUTHORITY_KEY_IDENTIFIER_OID = '551d23';

/** Reads the fields from the DER of a certificate that node:crypto has accepted (RFC 5280 §4.1). */
export function readCertificateFields(der: Buffer): CertificateFields {
  const [certificate] = derElements(der) ?? [];
  const [unsigned] = childrenOf(certificate);
  const fields = childrenOf(unsigned);
  const [versionNumber] = childrenOf(fields.find(({ tag }) => tag === VERSION_TAG));
  const [extensions] = childrenOf(fields.find(({ tag }) => tag === EXTENSIONS_TAG));
  const values = new Map(childrenOf(extensions).map(extensionOf));
  const usageBits = values.get(KEY_USAGE_OID)?.[0];
  const [isCa] = childrenOf(values.get(BASIC_CONSTRAINTS_OID)?.[0]);
  return {
    version: (versionNumber?.contents[0] ?? 0) + 1,
    keyUsage: usageBits === undefined ? null : (usageBits.contents[1] ?? 0),
    isCa: isCa?.tag === DER_TAG.boolean && isCa.contents[0] !== 0,
    hasAuthorityKeyIdentifier: values.has(AUTHORITY_KEY_IDENTIFIER_OID),
  };
}

/** An extension's identifier, in hex, and the elements of its value. */
function extensionOf(extension: DerElement): [string, DerElement[]] {
  const parts = childrenOf(extension);
  const value = parts.find(({ tag }) => tag === DER_TAG.octetString);
  return [parts[0]?.contents.toString('hex') ?? '', derElements(value?.contents ?? Buffer.alloc(0)) ?? []];
}

function childrenOf(element: DerElement | undefined): DerElement[] {
  return derElements(element?.contents ?? Buffer.alloc(0)) ?? [];
}
