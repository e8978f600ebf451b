import { X509Certificate } from 'node:crypto';

/** One PEM block (RFC 7468), such as `CERTIFICATE` or `ENCRYPTED PRIVATE KEY`, as it stands in its file. */
export interface PemBlock {
  readonly label: string;
  readonly pem: string;
}

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]{1,64})-----[^-]*-----END \1-----/g;

/** Returns the PEM blocks of a text, in order. Text between them is a comment. */
export function pemBlocks(text: string): PemBlock[] {
  return [...text.matchAll(PEM_BLOCK)].map(([pem, label = '']) => ({ label, pem: `${pem}\n` }));
}

/** Returns the text around PEM blocks. */
export function outsidePem(text: string): string {
  return text.replaceAll(PEM_BLOCK, '');
}

/** Returns the DER of a certificate as PEM. */
export function pemOf(der: Uint8Array): string {
  return new X509Certificate(der).toString();
}
