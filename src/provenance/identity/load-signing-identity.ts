import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { CredentialSettings, SignerSettings } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { problemOf } from '#errors/system-problem.ts';
import type { Signer, SigningAlgorithm } from '../signer.ts';
import type { SigningIdentity } from '../signing-identity.ts';
import { certificateProblems, profileDeviations } from './certificate-profile.ts';
import { loadDevelopmentIdentity } from './development-identity.ts';
import { algorithmsOfKey, createKeySigner } from './key-signer.ts';
import { pemBlocks } from './pem.ts';

/** The settings of a key that is in a file. */
export type PemCredential = CredentialSettings & { readonly signer: Extract<SignerSettings, { readonly type: 'pem' }> };

/**
 * Loads a credential; the development identity is made where it is missing or about to expire. `stateDir` is a folder that signers
 * share. Rejects with an AppError that says what is wrong, where, and the remedy: `IDENTITY_FILE_UNREADABLE`, `IDENTITY_INVALID` where
 * readers would refuse its signatures, or an error of the device.
 */
export async function loadCredential(settings: CredentialSettings, stateDir: string): Promise<SigningIdentity> {
  const { certificatePath, signer } = settings;
  if (signer.type === 'development') return await loadDevelopmentIdentity(certificatePath);
  if (signer.type === 'pem') {
    const { identity, problems } = await inspectIdentity({ ...settings, signer });
    if (problems.length > 0) throw invalid(certificatePath, problems);
    return identity;
  }
  const chain = certificatesOf(await readPem(certificatePath), certificatePath);
  const { publicKey } = itemAt(chain, 0);
  const algorithm = chooseAlgorithm(publicKey, certificatePath, settings.algorithm);
  const problems = await certificateProblems(chain, publicKey, new Date());
  if (problems.length > 0) throw invalid(certificatePath, problems);
  // Only the process of such a key loads what talks to devices.
  const { openSigner } = await import('./signers/open-signer.ts');
  const opening = { algorithm, publicKey, certificateChain: signedChainOf(chain), stateDir };
  return identityOf(chain, certificatePath, await openSigner(signer, opening));
}

/**
 * Loads a PEM chain and key, and returns for what readers would refuse its signatures. Throws `IDENTITY_FILE_UNREADABLE`, or
 * `IDENTITY_INVALID` where the files hold no chain and no key that could sign.
 */
export async function inspectIdentity({
  certificatePath,
  algorithm: wanted,
  signer: settings,
}: PemCredential): Promise<{ readonly identity: SigningIdentity; readonly problems: readonly string[] }> {
  const chain = certificatesOf(await readPem(certificatePath), certificatePath);
  const key = privateKeyOf(await readPem(settings.private_key_path), settings);
  const algorithm = chooseAlgorithm(key, settings.private_key_path, wanted);
  const problems = await certificateProblems(chain, createPublicKey(key), new Date());
  const signer = createKeySigner(key, algorithm, signedChainOf(chain));
  return { identity: await identityOf(chain, certificatePath, signer), problems };
}

async function identityOf(chain: readonly X509Certificate[], file: string, signer: Signer): Promise<SigningIdentity> {
  const leaf = itemAt(chain, 0);
  return {
    signer,
    kind: 'configured',
    subject: leaf.subject.replaceAll('\n', ', '),
    notAfter: new Date(Math.min(...chain.map(({ validToDate }) => validToDate.getTime()))).toISOString(),
    file,
    deviations: await profileDeviations(leaf),
    issuer: chain
      .slice(1)
      .find((each) => leaf.checkIssued(each))
      ?.raw.toString('base64'),
  };
}

async function readPem(file: string): Promise<string> {
  try {
    return await readFile(file, 'latin1');
  } catch (cause) {
    throw new AppError('IDENTITY_FILE_UNREADABLE', { file, problem: problemOf(cause) }, { cause });
  }
}

function certificatesOf(text: string, file: string): X509Certificate[] {
  const blocks = pemBlocks(text).filter(({ label }) => label === 'CERTIFICATE');
  if (blocks.length === 0) {
    throw invalid(file, ['it holds no certificate in PEM ("-----BEGIN CERTIFICATE-----"). Convert it, the leaf first']);
  }
  return blocks.map(({ pem }, index) => {
    try {
      return new X509Certificate(pem);
    } catch {
      // OpenSSL's reason says nothing that a person could use.
      throw invalid(file, [`certificate ${index + 1} is damaged. Export it again`]);
    }
  });
}

function privateKeyOf(
  text: string,
  { private_key_path: file, private_key_passphrase: passphrase }: PemCredential['signer'],
): KeyObject {
  const block = pemBlocks(text).find(({ label }) => label.endsWith('PRIVATE KEY'));
  if (block === undefined) {
    throw invalid(file, [
      'it holds no private key in PEM ("-----BEGIN PRIVATE KEY-----"). Convert it, for instance with "openssl pkcs8 -topk8"',
    ]);
  }
  const encrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  if (encrypted && passphrase === undefined) {
    throw invalid(file, [
      'the key is encrypted. Set private_key_passphrase beside its path, best through a variable such as SERVICE__SIGNING__PRIVATE_KEY_PASSPHRASE',
    ]);
  }
  try {
    return createPrivateKey({ key: block.pem, ...(encrypted && { passphrase }) });
  } catch {
    // OpenSSL's reason says nothing that a person could use, and nothing about a key belongs into a log.
    throw invalid(file, [encrypted ? 'the key cannot be decrypted with private_key_passphrase' : 'the key is damaged']);
  }
}

function chooseAlgorithm(key: KeyObject, file: string, algorithm: SigningAlgorithm | undefined): SigningAlgorithm {
  const possible = algorithmsOfKey(key);
  const [usual] = possible;
  if (usual === undefined) {
    throw invalid(file, [
      'C2PA has no signature algorithm for this kind of key. Use EC P-256, P-384 or P-521, RSA, or Ed25519',
    ]);
  }
  if (algorithm === undefined) return usual;
  if (possible.includes(algorithm)) return algorithm;
  throw invalid(file, [
    `algorithm is ${algorithm}, but the key can sign with ${possible.join(', ')} only. Remove algorithm from the configuration`,
  ]);
}

/** Returns the certificates of signatures as DER. Leaves out the root: verifiers hold the roots that they trust. */
function signedChainOf(chain: readonly X509Certificate[]): readonly Buffer[] {
  const kept = chain.filter((certificate, index) => index === 0 || !certificate.verify(certificate.publicKey));
  return kept.map(({ raw }) => raw);
}

function invalid(file: string, problems: readonly string[]): AppError {
  return new AppError('IDENTITY_INVALID', { file, problems });
}
