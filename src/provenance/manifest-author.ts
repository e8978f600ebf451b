import assert from 'node:assert';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '#errors/app-error.ts';
import type { Warning } from '#errors/warning.ts';
import {
  allOf,
  type ClaimGenerator,
  completeManifest,
  defineManifest,
  type ManifestContents,
  newInstanceId,
  type PreparedIngredient,
  type PreparedIngredients,
  type UniqueValues,
} from './authoring/manifest-definition.ts';
import { readIngredient } from './authoring/read-ingredient.ts';
import {
  type IdentityKeys,
  requireUnexpired,
  reserveTimeStamp,
  type Signature,
  signForSize,
  signWithIdentity,
} from './authoring/sign-manifest.ts';
import { NO_TIME_STAMP, type SignedManifest, type TimeStampSettings, TimeStamps } from './authoring/time-stamps.ts';
import { ChainAllowance } from './chain-limits.ts';
import type { IngredientSource, LateAssertion, ManifestRequest } from './manifest-request.ts';
import type { ManifestDefinition } from './sdk/sdk.ts';
import type { Signer } from './signer.ts';
import type { StapleSource } from './staples.ts';
import type { TrustLists, TrustSource } from './trust-lists.ts';

export type { SignedManifest, TimeStampSettings };

/** Makes manifests with the official SDK and the configured identities. The only code path from an input to a signature. */
export interface ManifestAuthor {
  /**
   * Reads the ingredients and fixes everything but the late assertions. Ingredients that cannot be read in full are
   * attached as far as possible, with a warning. Throws `IDENTITY_EXPIRED`. Rejects when the signal is aborted.
   */
  draft(request: ManifestRequest, signal: AbortSignal): Promise<ManifestDraft>;
}

/** A manifest that lacks only the assertions that are made of the output: its hard binding, and the presentation of a publication. */
export interface ManifestDraft {
  /** For the `warnings` of the result. */
  readonly warnings: readonly Warning[];
  /**
   * Returns the size in bytes of the signed manifest store, for assertions as large as the placeholders. Throws
   * `MANIFEST_REFUSED`, `IDENTITY_EXPIRED`, `IDENTITY_REVOKED`, `OCSP_RESPONSE_MISSING` or `TIME_STAMP_UNAVAILABLE`.
   */
  measure(placeholders: readonly LateAssertion[], signal: AbortSignal): Promise<number>;
  /**
   * Signs the manifest, which then has exactly the size that was measured last. Throws `MANIFEST_REFUSED`,
   * `IDENTITY_EXPIRED`, `IDENTITY_REVOKED`, `OCSP_RESPONSE_MISSING`, `SIGNATURE_FAILED`, `TIME_STAMP_UNAVAILABLE`, or `TIME_STAMP_LARGER`: see `signAgainIfLarger`.
   */
  sign(late: readonly LateAssertion[], signal: AbortSignal): Promise<SignedManifest>;
}

/** An identity as manifests are signed with it. */
interface AuthorIdentity extends IdentityKeys {
  /** Null where its signatures get no time-stamps. */
  readonly timeStamps: TimeStampSettings | null;
}

/** The identities, the name and the trust lists that an author makes manifests with. */
interface ManifestAuthorParts {
  /** Returns an identity by its name. Called once for each. */
  readonly identityOf: (name: string) => AuthorIdentity;
  /** OCSP responses to staple. */
  readonly staples: StapleSource;
  readonly generator: ClaimGenerator;
  /** Trust lists that the manifests of ingredients are validated with. */
  readonly trust: TrustSource;
}

/**
 * Runs a step that measures and signs a manifest, and once again where the time-stamp was larger than the space that was
 * measured for it. The second measure has the right size.
 */
export async function signAgainIfLarger<Result>(step: () => Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof AppError && error.reason === 'TIME_STAMP_LARGER')) throw error;
    return await step();
  }
}

/** Creates an author of manifests. */
export function createManifestAuthor({ generator, identityOf, staples, trust }: ManifestAuthorParts): ManifestAuthor {
  const measureSize = createSizeMeter();
  /** By the names of identities. `TimeStamps` knows the sizes of earlier answers. */
  const signatures = new Map<string, Signature>();
  const signatureOf = (name: string): Signature => {
    const known = signatures.get(name);
    if (known !== undefined) return known;
    const { timeStamps, ...keys } = identityOf(name);
    const signature = { ...keys, timeStamps: timeStamps && new TimeStamps(timeStamps), staples };
    signatures.set(name, signature);
    return signature;
  };
  return {
    async draft(request, signal) {
      const signature = signatureOf(request.identity);
      requireUnexpired(signature);
      const ingredients = await readIngredients(request, signature.signer, trust.current, signal);
      return draftOf({ request, ingredients, generator }, signature, measureSize);
    },
  };
}

async function readIngredients(
  { origin, components, inputs }: ManifestRequest,
  signer: Signer,
  trust: TrustLists,
  signal: AbortSignal,
): Promise<PreparedIngredients> {
  const context = { signer, trust, allowance: new ChainAllowance(), signal };
  const role = { relationship: 'parentOf', label: 'parent' } as const;
  const parent = origin.kind === 'created' ? null : await readIngredient(origin, role, context);
  const labels = new Map<IngredientSource, string>();
  if (origin.kind !== 'created') labels.set(origin, role.label);
  const readAll = async (
    sources: readonly IngredientSource[],
    { relationship, name }: { relationship: 'componentOf' | 'inputTo'; name: string },
  ): Promise<PreparedIngredient[]> => {
    const read: PreparedIngredient[] = [];
    // One after the other: the SDK may need much memory for the media of one.
    for (const [index, source] of sources.entries()) {
      const ingredient = await readIngredient(source, { relationship, label: `${name}-${index}` }, context);
      const isParent = parent !== null && isSameIngredient(ingredient, parent);
      labels.set(source, (isParent ? parent : ingredient).json.label);
      if (!isParent) read.push(ingredient);
    }
    return read;
  };
  return {
    parent,
    components: await readAll(components, { relationship: 'componentOf', name: 'component' }),
    inputs: await readAll(inputs, { relationship: 'inputTo', name: 'input' }),
    labels,
  };
}

/**
 * Tells whether two ingredients carry the same active manifest with the same validation failures. Attached as parent and
 * as component, each version of a file would refer to the one before twice, and validation time would double with each.
 */
function isSameIngredient(first: PreparedIngredient, second: PreparedIngredient): boolean {
  if (first.store === null || first.store.activeDigest !== second.store?.activeDigest) return false;
  return isDeepStrictEqual(new Set(first.failures), new Set(second.failures));
}

function draftOf(contents: ManifestContents, signature: Signature, measureSize: SizeMeter): ManifestDraft {
  const { instanceId = newInstanceId() } = contents.request;
  const definition = defineManifest(contents, { now: new Date(), instanceId });
  let sizeBytes = 0;
  let space = NO_TIME_STAMP;
  let stapleBytes = 0;
  return {
    warnings: allOf(contents.ingredients).flatMap(({ warnings }) => warnings),
    async measure(placeholders, signal) {
      const plainBytes = await measureSize(contents, signature, placeholders, signal);
      if (space.problems.length === 0) space = await reserveTimeStamp(signature, signal);
      stapleBytes = signature.staples.current.reserve(signature.signer);
      sizeBytes = plainBytes + space.sizeBytes + stapleBytes;
      return sizeBytes;
    },
    async sign(late, signal) {
      const signed = await signWithIdentity(completeManifest(definition, late), signature, space, signal, stapleBytes);
      assert.equal(signed.manifest.length, sizeBytes, 'a manifest has the size that was measured');
      return signed;
    },
  };
}

/** Limits the sizes in the cache: a batch of files has about as many as there are lengths of names. */
const MAX_CACHED_SIZES = 256;

/** Placeholders for the values that differ in every manifest. */
const PLACEHOLDERS: UniqueValues = { now: new Date(0), instanceId: 'xmp:iid:00000000-0000-4000-8000-000000000000' };

/** Returns the size in bytes of a signed manifest store without a time-stamp. */
type SizeMeter = (
  contents: ManifestContents,
  signature: Signature,
  placeholders: readonly LateAssertion[],
  signal: AbortSignal,
) => Promise<number>;

/**
 * Creates a meter, which signs a manifest of the same size with zeros. A batch of files needs nearly the same
 * manifest over and over, so sizes are cached by what determines them.
 */
function createSizeMeter(): SizeMeter {
  const cache = new Map<string, number>();
  return async (contents, signature, placeholders, signal) => {
    const definition = completeManifest(defineManifest(contents, PLACEHOLDERS), placeholders);
    const key = `${contents.request.identity} ${keyOf(definition)}`;
    const known = cache.get(key);
    if (known !== undefined) return known;

    const sizeBytes = (await signForSize(definition, signature, signal)).length;
    addToCache(cache, key, sizeBytes);
    return sizeBytes;
  };
}

/** Returns a text that is the same for definitions of manifests of one size. */
function keyOf({ json, createdLabels, resources }: ManifestDefinition): string {
  const ingredients = (json['ingredients'] as readonly ManifestDefinition['json'][]).map(withSizes);
  const hash = createHash('sha256').update(JSON.stringify([withSizes({ ...json, ingredients }), createdLabels]));
  for (const bytes of resources.values()) hash.update(bytes);
  return hash.digest('base64');
}

/** Returns a claim or an ingredient with the sizes of those texts in place of them that differ from file to file. */
function withSizes({ title, instance_id: instanceId, ...rest }: ManifestDefinition['json']): object {
  return { ...rest, title: sizeOf(title), instance_id: sizeOf(instanceId) };
}

function sizeOf(text: unknown): unknown {
  return typeof text === 'string' ? Buffer.byteLength(text) : text;
}

function addToCache(cache: Map<string, number>, key: string, sizeBytes: number): void {
  const [oldest] = cache.keys();
  if (oldest !== undefined && cache.size >= MAX_CACHED_SIZES) cache.delete(oldest);
  cache.set(key, sizeBytes);
}
