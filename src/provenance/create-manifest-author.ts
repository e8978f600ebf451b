import assert from 'node:assert';
import { AppError } from '#errors/app-error.ts';
import type { HardBinding } from '#formats/format-handler.ts';
import { pemOf } from './certificate.ts';
import type { ManifestAuthor, ManifestDraft, ManifestRequest } from './manifest-author.ts';
import {
  bindManifest,
  type ClaimGenerator,
  defineManifest,
  type PreparedIngredient,
  type PreparedIngredients,
} from './manifest-definition.ts';
import { readIngredient, type TrialSigner } from './read-ingredient.ts';
import { type ManifestDefinition, type SigningCall, signManifest } from './sdk.ts';
import { sdkProblem } from './sdk-problem.ts';
import { type Signer, signatureReserveBytes } from './signer.ts';

/** What an author signs with, and in whose name. */
export interface ManifestAuthorParts {
  readonly signer: Signer;
  readonly generator: ClaimGenerator;
}

/** Guards against a signature box that comes out a little larger than on trial; what is not needed becomes zeros. */
const SLACK_BYTES = 16;

/** Makes manifests with the official SDK: each is signed on trial to learn its size, then for real. */
export function createManifestAuthor({ signer, generator }: ManifestAuthorParts): ManifestAuthor {
  const call = signingCallOf(signer);
  const trial: TrialSigner = { call, sign: async () => Buffer.alloc(signer.signatureSizeBytes) };
  return {
    async draft(request, signal) {
      const ingredients = await readIngredients(request, trial, signal);
      const definition = defineManifest(request, ingredients, generator, new Date());
      const warnings = [ingredients.parent, ...ingredients.components].flatMap((ingredient) => ingredient.warnings);
      return draftOf(definition, warnings, signer, trial);
    },
  };
}

async function readIngredients(
  { parent, components }: ManifestRequest,
  trial: TrialSigner,
  signal: AbortSignal,
): Promise<PreparedIngredients> {
  const read: PreparedIngredient[] = [];
  // One after the other: each may hold a whole manifest store, and the SDK reads the media of each.
  for (const [index, component] of components.entries()) {
    read.push(await readIngredient(component, 'componentOf', `component-${index}`, trial, signal));
  }
  return { parent: await readIngredient(parent, 'parentOf', 'parent', trial, signal), components: read };
}

function draftOf(
  definition: ManifestDefinition,
  warnings: readonly string[],
  signer: Signer,
  trial: TrialSigner,
): ManifestDraft {
  let measuredBytes: number | null = null;
  return {
    warnings,
    async measure(placeholder, signal) {
      const manifest = await buildManifest(definition, placeholder, trial, signal);
      measuredBytes = manifest.length + SLACK_BYTES;
      return measuredBytes;
    },
    async sign(binding, signal) {
      const manifest = await signForReal(definition, binding, signer, signal);
      assert(
        measuredBytes === null || manifest.length <= measuredBytes,
        'a manifest is no larger than it was measured',
      );
      return manifest;
    },
  };
}

async function buildManifest(
  definition: ManifestDefinition,
  binding: HardBinding,
  { call, sign }: TrialSigner,
  signal: AbortSignal,
): Promise<Buffer> {
  try {
    return await signManifest(bindManifest(definition, binding), call, sign, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new AppError('MANIFEST_REFUSED', { problem: sdkProblem(cause) }, { cause });
  }
}

async function signForReal(
  definition: ManifestDefinition,
  binding: HardBinding,
  signer: Signer,
  signal: AbortSignal,
): Promise<Buffer> {
  let failure: unknown = null;
  const sign = async (data: Buffer): Promise<Buffer> => {
    try {
      return await signer.sign(data);
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  try {
    return await buildManifest(definition, binding, { call: signingCallOf(signer), sign }, signal);
  } catch (error) {
    if (failure === null) throw error;
    throw new AppError('SIGNATURE_FAILED', { problem: sdkProblem(failure) }, { cause: failure });
  }
}

/** How the SDK is to sign for a signer, without a time-stamp. */
export function signingCallOf(signer: Signer): SigningCall {
  return {
    alg: signer.algorithm,
    // The SDK takes certificates as PEM only, and one after the other in one buffer.
    certs: [Buffer.from(signer.certificateChain.map(pemOf).join(''))],
    reserveSize: signatureReserveBytes(signer),
    directCoseHandling: false,
  };
}
