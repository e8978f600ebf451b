import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { type CertificateContents, type Issuer, issueCertificate, KEY_USAGE } from '#provenance/identity/x509.ts';
import type { Signer, SigningAlgorithm } from '#provenance/signer.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Options of a test identity; everything else follows the certificate profile. */
export interface TestIdentityWishes {
  readonly algorithm?: SigningAlgorithm;
  /** Takes the place of a fresh key for the algorithm. */
  readonly key?: KeyObject;
  /** Replaces what the leaf says. */
  readonly leaf?: Partial<CertificateContents>;
  /** The leaf certifies itself (with a P-256 key only). */
  readonly selfSigned?: boolean;
  /** Puts an intermediate authority between root and leaf; its end, where it is not that of the others. */
  readonly intermediate?: boolean | { readonly notAfter: Date };
}

/** An authority made for tests, and a leaf of it. */
export interface TestIdentity {
  readonly privateKey: KeyObject;
  /** DER, leaf first, the root last. */
  readonly chain: readonly Buffer[];
  readonly signer: Signer;
}

/** A private key that signs with the algorithm. */
export function testKey(algorithm: SigningAlgorithm): KeyObject {
  switch (algorithm) {
    case 'es256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    case 'es384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    case 'es512':
      return generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey;
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey;
    default:
      return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  }
}

/** Makes an identity that satisfies the certificate profile, but for what is wished otherwise. */
export async function testIdentity(wishes: TestIdentityWishes = {}): Promise<TestIdentity> {
  const { algorithm = 'es256', key: privateKey = testKey(algorithm), intermediate = false } = wishes;
  const root = await authority('Test root');
  const issuing = intermediate
    ? await authority('Test intermediate', root, intermediate === true ? {} : intermediate)
    : root;
  const contents: CertificateContents = {
    commonName: 'Test signer',
    organization: 'Attestream tests',
    publicKey: createPublicKey(privateKey),
    ...validity(),
    keyUsage: KEY_USAGE.digitalSignature,
    extendedKeyUsages: [EXTENDED_KEY_USAGE.emailProtection],
    ...wishes.leaf,
  };
  const issuer = wishes.selfSigned ? { ...contents, privateKey } : issuing.issuer;
  const leaf = await issueCertificate(contents, issuer);
  const chain = wishes.selfSigned ? [leaf] : [leaf, ...issuing.chain];
  const signer = createKeySigner(privateKey, algorithm, chain.slice(0, Math.max(1, chain.length - 1)));
  return { privateKey, chain, signer };
}

/** An identity for tests that need nothing special of one. */
export const defaultIdentity = await testIdentity();

/** Writes an identity as an operator would keep it: a chain and a key, each in PEM. */
export function writeIdentity(
  folder: string,
  { chain, privateKey }: Pick<TestIdentity, 'chain' | 'privateKey'>,
  { passphrase }: { passphrase?: string } = {},
): { certificatePath: string; privateKeyPath: string } {
  const certificatePath = path.join(folder, 'chain.pem');
  const privateKeyPath = path.join(folder, 'key.pem');
  const encryption = passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase };
  writeFileSync(certificatePath, chain.map(pemOf).join(''));
  writeFileSync(privateKeyPath, privateKey.export({ type: 'pkcs8', format: 'pem', ...encryption }));
  return { certificatePath, privateKeyPath };
}

interface TestAuthority {
  readonly issuer: Issuer;
  readonly chain: readonly Buffer[];
}

async function authority(
  commonName: string,
  parent?: TestAuthority,
  wishes: Partial<CertificateContents> = {},
): Promise<TestAuthority> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyUsage = KEY_USAGE.keyCertSign | KEY_USAGE.cRLSign;
  const subject = { commonName, organization: 'Attestream tests' };
  const contents = { ...subject, publicKey, ...validity(), isCa: true, keyUsage, ...wishes };
  const issuer = { ...subject, privateKey };
  const certificate = await issueCertificate(contents, parent?.issuer ?? issuer);
  return { issuer, chain: [certificate, ...(parent?.chain ?? [])] };
}

/** Longer than the time before the end of an identity in which the log warns of it. */
function validity(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 60 * DAY_MS) };
}
