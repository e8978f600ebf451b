import { X509Certificate } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { callRecorder } from '#telemetry/call-recorder.ts';
import { type ManifestDefinition, type SdkSignature, signManifest } from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';
import { pemOf } from './certificate.ts';
import { type Signer, signatureReserveBytes } from './signer.ts';
import { MAX_TIME_STAMP_BYTES, type TimeStampAuthority, withTimeStampRelay } from './time-stamp-relay.ts';

/** What a signature is made with. */
export interface Signature {
  readonly signer: Signer;
  readonly timeStampAuthority: TimeStampAuthority | null;
}

/** What the place of a time-stamp in the signature takes beside the time-stamp itself. */
const TIME_STAMP_OVERHEAD_BYTES = 256;

/** Signs a manifest without the key: of the size that it will have, and worth nothing. */
export async function signOnTrial(
  definition: ManifestDefinition,
  signature: Signature,
  signal: AbortSignal,
): Promise<Buffer> {
  try {
    return await signManifest(definition, trialSignature(signature), signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw manifestRefused(cause, signature);
  }
}

/** How the SDK is to sign on trial. */
export function trialSignature(signature: Signature): SdkSignature {
  const { signatureSizeBytes } = signature.signer;
  return { call: signingCallOf(signature), sign: async () => Buffer.alloc(signatureSizeBytes) };
}

/** Signs a manifest for real. The key is asked once, and so is the time-stamp authority where there is one. */
export async function signForReal(
  definition: ManifestDefinition,
  signature: Signature,
  signal: AbortSignal,
): Promise<Buffer> {
  const { timeStampAuthority } = signature;
  if (timeStampAuthority === null) return signWithKey(definition, signature, null, signal);
  return withTimeStampRelay(timeStampAuthority, signal, async (relay) => {
    try {
      return await signWithKey(definition, signature, relay.url, signal);
    } catch (cause) {
      signal.throwIfAborted();
      const problem = relay.problem();
      if (problem === null) throw cause;
      throw new AppError('TIME_STAMP_UNAVAILABLE', { host: new URL(timeStampAuthority.url).host, problem }, { cause });
    }
  });
}

/** Tells the failure of the key from that of the SDK, which hides the cause. */
async function signWithKey(
  definition: ManifestDefinition,
  signature: Signature,
  tsaUrl: string | null,
  signal: AbortSignal,
): Promise<Buffer> {
  let keyFailure: unknown = null;
  const sign = async (data: Buffer): Promise<Buffer> => {
    try {
      return await callRecorder.measure('sign', () => signature.signer.sign(data));
    } catch (error) {
      keyFailure = error;
      throw error;
    }
  };
  try {
    const call = { ...signingCallOf(signature), ...(tsaUrl !== null && { tsaUrl }) };
    return await signManifest(definition, { call, sign }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    if (keyFailure === null) throw manifestRefused(cause, signature);
    throw new AppError('SIGNATURE_FAILED', { problem: sdkProblem(keyFailure) }, { cause: keyFailure });
  }
}

const signingCalls = new WeakMap<Signature, SdkSignature['call']>();

/** What an identity signs with is the same for every manifest. */
function signingCallOf(signature: Signature): SdkSignature['call'] {
  const known = signingCalls.get(signature);
  if (known !== undefined) return known;
  const made = makeSigningCall(signature);
  signingCalls.set(signature, made);
  return made;
}

function makeSigningCall({ signer, timeStampAuthority }: Signature): SdkSignature['call'] {
  const timeStampBytes = timeStampAuthority === null ? 0 : MAX_TIME_STAMP_BYTES + TIME_STAMP_OVERHEAD_BYTES;
  return {
    alg: signer.algorithm,
    // The SDK takes certificates as PEM only, and one after the other in one buffer.
    certs: [Buffer.from(signer.certificateChain.map(pemOf).join(''))],
    reserveSize: signatureReserveBytes(signer) + timeStampBytes,
    directCoseHandling: false,
  };
}

/** An expired certificate is refused like a bad manifest, but is the fault of the service. */
function manifestRefused(cause: unknown, { signer }: Signature): AppError {
  const expired = signer.certificateChain
    .map((der) => new X509Certificate(der).validToDate)
    .find((end) => end < new Date());
  if (expired !== undefined) return new AppError('IDENTITY_EXPIRED', { notAfter: expired.toISOString() }, { cause });
  return new AppError('MANIFEST_REFUSED', { problem: sdkProblem(cause) }, { cause });
}
