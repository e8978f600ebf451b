import { createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { problemOf } from '#errors/system-problem.ts';
import type { SigningAlgorithm } from '../signer.ts';
import type { SigningIdentity } from '../signing-identity.ts';
import { certificateProblems, profileDeviations } from './certificate-profile.ts';
import { developmentIdentityFile, loadDevelopmentIdentity } from './development-identity.ts';
import { algorithmsOfKey, createKeySigner } from './key-signer.ts';
import { pemBlocks } from './pem.ts';

/**
 * Loads the configured identity, else the development identity under the data folder, which is made where it is missing
 * or about to expire. Rejects with an AppError that names the file, what is wrong with it, and the remedy.
 */
export function loadSigningIdentity(signing: Config['signing'], dataDir: string): Promise<SigningIdentity> {
  const { certificate_path: certificatePath, private_key_path: privateKeyPath } = signing;
  if (certificatePath === undefined || privateKeyPath === undefined) return loadDevelopmentIdentity(dataDir);
  return loadConfiguredIdentity({
    certificatePath,
    privateKeyPath,
    passphrase: signing.private_key_passphrase,
    algorithm: signing.algorithm,
  });
}

/** Returns the files that the identity is loaded from. */
export function identityFiles({ signing, jobs }: Pick<Config, 'signing' | 'jobs'>): readonly string[] {
  const { certificate_path: certificatePath, private_key_path: privateKeyPath } = signing;
  if (certificatePath === undefined || privateKeyPath === undefined) return [developmentIdentityFile(jobs.data_dir)];
  return [certificatePath, privateKeyPath];
}

/** The files of an identity, from `signing` of the configuration. */
export interface IdentityFiles {
  readonly certificatePath: string;
  readonly privateKeyPath: string;
  readonly passphrase: string | undefined;
  /** Undefined: the default of the key. */
  readonly algorithm: SigningAlgorithm | undefined;
}

/**
 * Loads a PEM chain and key. Throws `IDENTITY_FILE_UNREADABLE`, or `IDENTITY_INVALID` where readers would
 * refuse its signatures.
 */
async function loadConfiguredIdentity(files: IdentityFiles): Promise<SigningIdentity> {
  const { identity, problems } = await inspectIdentity(files);
  if (problems.length > 0) throw invalid(files.certificatePath, problems);
  return identity;
}

/**
 * Loads a PEM chain and key, and returns for what readers would refuse its signatures. Throws `IDENTITY_FILE_UNREADABLE`, or
 * `IDENTITY_INVALID` where the files hold no chain and no key that could sign.
 */
export async function inspectIdentity(
  files: IdentityFiles,
): Promise<{ readonly identity: SigningIdentity; readonly problems: readonly string[] }> {
  const chain = certificatesOf(await readPem(files.certificatePath), files.certificatePath);
  const key = privateKeyOf(await readPem(files.privateKeyPath), files);
  const algorithm = chooseAlgorithm(key, files);
  const problems = await certificateProblems(chain, createPublicKey(key), algorithm, new Date());
  const leaf = itemAt(chain, 0);
  const signer = createKeySigner(
    key,
    algorithm,
    withoutRoot(chain).map(({ raw }) => raw),
  );
  const identity: SigningIdentity = {
    signer,
    kind: 'configured',
    subject: leaf.subject.replaceAll('\n', ', '),
    notAfter: new Date(Math.min(...chain.map(({ validToDate }) => validToDate.getTime()))),
    file: files.certificatePath,
    deviations: await profileDeviations(leaf),
  };
  return { identity, problems };
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

function privateKeyOf(text: string, { privateKeyPath: file, passphrase }: IdentityFiles): KeyObject {
  const block = pemBlocks(text).find(({ label }) => label.endsWith('PRIVATE KEY'));
  if (block === undefined) {
    throw invalid(file, [
      'it holds no private key in PEM ("-----BEGIN PRIVATE KEY-----"). Convert it, for instance with "openssl pkcs8 -topk8"',
    ]);
  }
  const encrypted = block.label.startsWith('ENCRYPTED') || block.pem.includes('Proc-Type: 4,ENCRYPTED');
  if (encrypted && passphrase === undefined) {
    throw invalid(file, [
      'the key is encrypted. Set signing.private_key_passphrase, best through SERVICE__SIGNING__PRIVATE_KEY_PASSPHRASE',
    ]);
  }
  try {
    return createPrivateKey({ key: block.pem, ...(encrypted && { passphrase }) });
  } catch {
    // OpenSSL's reason says nothing that a person could use, and nothing about a key belongs into a log.
    throw invalid(file, [
      encrypted ? 'the key cannot be decrypted with signing.private_key_passphrase' : 'the key is damaged',
    ]);
  }
}

function chooseAlgorithm(key: KeyObject, { privateKeyPath: file, algorithm }: IdentityFiles): SigningAlgorithm {
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
    `signing.algorithm is ${algorithm}, but the key can sign with ${possible.join(', ')} only. Remove signing.algorithm`,
  ]);
}

/** Leaves out the root: verifiers hold the roots that they trust. */
function withoutRoot(chain: readonly X509Certificate[]): readonly X509Certificate[] {
  return chain.filter((certificate, index) => index === 0 || !certificate.verify(certificate.publicKey));
}

function invalid(file: string, problems: readonly string[]): AppError {
  return new AppError('IDENTITY_INVALID', { file, problems });
}
