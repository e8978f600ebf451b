import { X509Certificate } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { type ManifestDefinition, type SdkSignature, signManifest } from '../sdk/sdk.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import { type Signer, signatureReserveBytes } from '../signer.ts';
import { type StapleSource, stapleResponse } from '../staples.ts';
import { identityAssertionOf } from './identity-assertion.ts';
import { smallestDefinition } from './manifest-definition.ts';
import {
  MAX_TIME_STAMP_BYTES,
  NO_TIME_STAMP,
  type SignedManifest,
  type TimeStampSpace,
  type TimeStamps,
} from './time-stamps.ts';

/** The keys of an identity. */
export interface IdentityKeys {
  readonly signer: Signer;
  /** Vouches for what was signed by an identity assertion; null where nobody does. */
  readonly publisher: Signer | null;
}

/** The parts that a signature is made with. */
export interface Signature extends IdentityKeys {
  /** Null where signatures get no time-stamps. */
  readonly timeStamps: TimeStamps | null;
  /** OCSP responses to staple. */
  readonly staples: StapleSource;
}

/**
 * Signs a manifest with zeros instead of the keys, to learn its size. Throws `MANIFEST_REFUSED` or `IDENTITY_EXPIRED`.
 */
export async function signForSize(
  definition: ManifestDefinition,
  keys: IdentityKeys,
  signal: AbortSignal,
  call = constantsOf(keys.signer).call,
): Promise<Buffer> {
  requireUnexpired(keys);
  const { signer, publisher } = keys;
  const zeros = { signer: withZeros(signer), publisher: publisher && withZeros(publisher) };
  return await signWith(zeros, definition, call, signal);
}

/** Returns a signature of zeros, of the size of a real one without a time-stamp. */
export function zeroSignature(signer: Signer): SdkSignature {
  return { call: constantsOf(signer).call, sign: withZeros(signer).sign };
}

function withZeros(signer: Signer): Signer {
  return { ...signer, sign: async () => Buffer.alloc(signer.signatureSizeBytes) };
}

/**
 * Returns the space for a time-stamp in the next signature, and has an authority answer a probe when none has answered yet.
 * Throws `TIME_STAMP_UNAVAILABLE`.
 */
export async function reserveTimeStamp(
  { signer, timeStamps }: Pick<Signature, 'signer' | 'timeStamps'>,
  signal: AbortSignal,
): Promise<TimeStampSpace> {
  if (timeStamps === null) return NO_TIME_STAMP;
  const call = constantsOf(signer).call;
  const reserveSize = call.reserveSize + MAX_TIME_STAMP_BYTES;
  const probe = (tsaUrl: string): Promise<Buffer> =>
    signForSize(smallestDefinition(), { signer, publisher: null }, signal, { ...call, reserveSize, tsaUrl });
  return timeStamps.reserve(probe, signal);
}

/**
 * Signs a manifest with the keys, and with a time-stamp and an OCSP response where there is space for them. The result is larger by
 * that space than what `signForSize` returns for a definition as large, however large they are: the SDK pads the
 * signature (C2PA 2.2 §10.4). Throws `SIGNATURE_FAILED`, `TIME_STAMP_UNAVAILABLE`, `TIME_STAMP_LARGER`,
 * `MANIFEST_REFUSED`, `IDENTITY_EXPIRED`, and what `Staples` throws.
 */
export async function signWithIdentity(
  definition: ManifestDefinition,
  { timeStamps, staples, ...keys }: Signature,
  space: TimeStampSpace,
  signal: AbortSignal,
  stapleBytes = 0,
): Promise<SignedManifest> {
  const response = staples.current.take(keys.signer, stapleBytes);
  const call = constantsOf(keys.signer).call;
  const reserveSize = call.reserveSize + space.sizeBytes + stapleBytes;
  const signing = async (tsaUrl: string | null): Promise<Buffer> => {
    requireUnexpired(keys);
    const stamped = { ...call, reserveSize, ...(tsaUrl !== null && { tsaUrl }) };
    const store = await signWith(keys, definition, stamped, signal);
    return response === null ? store : stapleResponse(store, response);
  };
  if (timeStamps === null) return { manifest: await signing(null), warnings: [] };
  return timeStamps.sign(signing, space, signal);
}

/** Distinguishes a failure of a key from one of the SDK, which hides the cause. */
async function signWith(
  { signer, publisher }: IdentityKeys,
  definition: ManifestDefinition,
  call: SdkSignature['call'],
  signal: AbortSignal,
): Promise<Buffer> {
  let keyFailure: unknown = null;
  const recorded = (key: Signer): Signer => {
    const sign = async (data: Uint8Array): Promise<Buffer> => {
      try {
        return await key.sign(data);
      } catch (error) {
        keyFailure = error;
        throw error;
      }
    };
    return { ...key, sign };
  };
  const identityAssertion = publisher === null ? undefined : identityAssertionOf(recorded(publisher), definition);
  try {
    return await signManifest(definition, { call, sign: recorded(signer).sign, identityAssertion }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    if (keyFailure === null) throw new AppError('MANIFEST_REFUSED', { problem: sdkProblem(cause) }, { cause });
    throw new AppError('SIGNATURE_FAILED', { problem: sdkProblem(keyFailure) }, { cause: keyFailure });
  }
}

/** The values that are the same for every manifest of a signer. */
interface SignerConstants {
  readonly call: SdkSignature['call'];
  /** The expiry of the certificate of the chain that ends first. */
  readonly notAfter: Date;
}

const knownConstants = new WeakMap<Signer, SignerConstants>();

function constantsOf(signer: Signer): SignerConstants {
  const known = knownConstants.get(signer);
  if (known !== undefined) return known;
  const certificates = signer.certificateChain.map((der) => new X509Certificate(der));
  const call = {
    alg: signer.algorithm,
    // The SDK takes certificates as PEM only, and one after the other in one buffer.
    certs: [Buffer.from(certificates.map(String).join(''))],
    reserveSize: signatureReserveBytes(signer),
    directCoseHandling: false,
  };
  const notAfter = new Date(Math.min(...certificates.map(({ validToDate }) => validToDate.getTime())));
  const constants = { call, notAfter };
  knownConstants.set(signer, constants);
  return constants;
}

/**
 * Throws `IDENTITY_EXPIRED` where a certificate of an identity has expired. The SDK looks at the first one only, and some of what it
 * signs is in a cache.
 */
export function requireUnexpired({ signer, publisher }: IdentityKeys): void {
  for (const { notAfter } of [signer, publisher ?? []].flat().map(constantsOf)) {
    if (notAfter.getTime() < Date.now()) throw new AppError('IDENTITY_EXPIRED', { notAfter: notAfter.toISOString() });
  }
}
