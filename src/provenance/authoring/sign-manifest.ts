import { X509Certificate } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { callRecorder } from '#telemetry/run-report.ts';
import { pemOf } from '../identity/pem.ts';
import { type ManifestDefinition, type SdkSignature, signManifest } from '../sdk/sdk.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import { type Signer, signatureReserveBytes } from '../signer.ts';
import { NO_STAPLE_SPACE, NO_STAPLES, type StapleSource, stapleResponse } from '../staples.ts';
import { identityAssertionOf } from './identity-assertion.ts';
import { smallestDefinition } from './manifest-definition.ts';
import { MAX_TIME_STAMP_BYTES } from './time-stamp-relay.ts';
import { NO_TIME_STAMP, type SignedManifest, type TimeStampSpace, type TimeStamps } from './time-stamps.ts';

/** The parts that a signature is made with. */
export interface Signature {
  readonly signer: Signer;
  /** Vouches for what was signed by an identity assertion; null where nobody does. */
  readonly publisher: Signer | null;
  /** Null where signatures get no time-stamps. */
  readonly timeStamps: TimeStamps | null;
  /** OCSP responses to staple; none by default. */
  readonly staples?: StapleSource;
}

/**
 * Signs a manifest with zeros instead of the keys, to learn its size. Throws `MANIFEST_REFUSED` or `IDENTITY_EXPIRED`.
 */
export async function signForSize(
  definition: ManifestDefinition,
  { signer, publisher }: Omit<Signature, 'timeStamps'>,
  signal: AbortSignal,
  call = signingCallOf(signer),
): Promise<Buffer> {
  requireUnexpired(signer);
  if (publisher !== null) requireUnexpired(publisher);
  const identityAssertion = publisher === null ? undefined : identityAssertionOf(withZeros(publisher), definition);
  try {
    return await signManifest(definition, { ...zeroSignature(signer), call, identityAssertion }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw manifestRefused(cause);
  }
}

/** Returns a signature of zeros, of the size of a real one without a time-stamp. */
export function zeroSignature(signer: Signer): SdkSignature {
  return { call: signingCallOf(signer), sign: withZeros(signer).sign };
}

function withZeros(signer: Signer): Signer {
  return { ...signer, sign: async () => Buffer.alloc(signer.signatureSizeBytes) };
}

/**
 * Returns the space for a time-stamp in the next signature, and has an authority answer a probe when none has answered yet.
 * Throws `TIME_STAMP_UNAVAILABLE`.
 */
export async function reserveTimeStamp(
  { signer, timeStamps }: Omit<Signature, 'publisher'>,
  signal: AbortSignal,
): Promise<TimeStampSpace> {
  if (timeStamps === null) return NO_TIME_STAMP;
  const call = signingCallOf(signer);
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
  { signer, publisher, timeStamps, staples = { current: NO_STAPLES } }: Signature,
  space: TimeStampSpace,
  signal: AbortSignal,
  stapleSpace = NO_STAPLE_SPACE,
): Promise<SignedManifest> {
  const response = staples.current.take(signer, stapleSpace);
  const call = signingCallOf(signer);
  const reserveSize = call.reserveSize + space.sizeBytes + stapleSpace.sizeBytes;
  const signing = async (tsaUrl: string | null): Promise<Buffer> => {
    const stamped = { ...call, reserveSize, ...(tsaUrl !== null && { tsaUrl }) };
    const store = await signWithKeys(definition, { signer, publisher }, stamped, signal);
    return response === null ? store : stapleResponse(store, response);
  };
  if (timeStamps === null) return { manifest: await signing(null), warnings: [] };
  return timeStamps.sign(signing, space, signal);
}

/** Distinguishes a failure of a key from one of the SDK, which hides the cause. */
async function signWithKeys(
  definition: ManifestDefinition,
  { signer, publisher }: Omit<Signature, 'timeStamps'>,
  call: SdkSignature['call'],
  signal: AbortSignal,
): Promise<Buffer> {
  let keyFailure: unknown = null;
  const recorded = (key: Signer): Signer => {
    requireUnexpired(key);
    const sign = async (data: Uint8Array): Promise<Buffer> => {
      try {
        return await callRecorder.measure('sign', () => key.sign(data));
      } catch (error) {
        keyFailure = error;
        throw error;
      }
    };
    return { ...key, sign };
  };
  const { sign } = recorded(signer);
  const identityAssertion = publisher === null ? undefined : identityAssertionOf(recorded(publisher), definition);
  try {
    return await signManifest(definition, { call, sign, identityAssertion }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    if (keyFailure === null) throw manifestRefused(cause);
    throw new AppError('SIGNATURE_FAILED', { problem: sdkProblem(keyFailure) }, { cause: keyFailure });
  }
}

const signingCalls = new WeakMap<Signer, SdkSignature['call']>();

/** Caches the configuration, which is the same for every manifest of an identity. */
function signingCallOf(signer: Signer): SdkSignature['call'] {
  const known = signingCalls.get(signer);
  if (known !== undefined) return known;
  const made = {
    alg: signer.algorithm,
    // The SDK takes certificates as PEM only, and one after the other in one buffer.
    certs: [Buffer.from(signer.certificateChain.map(pemOf).join(''))],
    reserveSize: signatureReserveBytes(signer),
    directCoseHandling: false,
  };
  signingCalls.set(signer, made);
  return made;
}

function manifestRefused(cause: unknown): AppError {
  return new AppError('MANIFEST_REFUSED', { problem: sdkProblem(cause) }, { cause });
}

const expiries = new WeakMap<Signer, Date>();

/**
 * Throws `IDENTITY_EXPIRED` where a certificate of the signer has expired. The SDK looks at the first one only, and some of what it
 * signs is in a cache.
 */
export function requireUnexpired(signer: Signer): void {
  let notAfter = expiries.get(signer);
  if (notAfter === undefined) {
    const ends = signer.certificateChain.map((der) => new X509Certificate(der).validToDate.getTime());
    notAfter = new Date(Math.min(...ends));
    expiries.set(signer, notAfter);
  }
  if (notAfter.getTime() < Date.now()) throw new AppError('IDENTITY_EXPIRED', { notAfter: notAfter.toISOString() });
}
