import assert from 'node:assert';
import { isDeepStrictEqual } from 'node:util';
import { type Signature, signForReal } from '../identity/signing-pass.ts';
import { ChainAllowance } from '../reading/chain-limits.ts';
import { readIngredient } from '../reading/read-ingredient.ts';
import type { ManifestAuthor, ManifestDraft, ManifestRequest } from './manifest-author.ts';
import {
  bindManifest,
  type ClaimGenerator,
  defineManifest,
  type ManifestContents,
  newInstanceId,
  type PreparedIngredient,
  type PreparedIngredients,
} from './manifest-definition.ts';
import { createManifestMeter, type ManifestMeter } from './manifest-meter.ts';

/** What an author signs with, and in whose name. */
export interface ManifestAuthorParts extends Signature {
  readonly generator: ClaimGenerator;
}

/** Makes manifests with the official SDK. */
export function createManifestAuthor({ generator, ...signature }: ManifestAuthorParts): ManifestAuthor {
  const meter = createManifestMeter(signature);
  return {
    async draft(request, signal) {
      const ingredients = await readIngredients(request, signature, signal);
      return draftOf({ request, ingredients, generator }, signature, meter);
    },
  };
}

async function readIngredients(
  { parent: from, components: others }: ManifestRequest,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredients> {
  const context = { signature, allowance: new ChainAllowance(), signal };
  const parent = await readIngredient(from, { relationship: 'parentOf', label: 'parent' }, context);
  const components: PreparedIngredient[] = [];
  // One after the other: the SDK may need much memory to read the media of one.
  for (const [index, component] of others.entries()) {
    const place = { relationship: 'componentOf', label: `component-${index}` } as const;
    const read = await readIngredient(component, place, context);
    if (!saysTheSame(read, parent)) components.push(read);
  }
  return { parent, components };
}

/**
 * Whether two ingredients carry the same active manifest, and were found to be the same by it: as parent and component both,
 * each version of a file would lead to the one before twice, and readers would take twice as long with every version.
 */
function saysTheSame(first: PreparedIngredient, second: PreparedIngredient): boolean {
  if (first.store === null || first.store.activeDigest !== second.store?.activeDigest) return false;
  return isDeepStrictEqual(new Set(first.failures), new Set(second.failures));
}

function draftOf(contents: ManifestContents, signature: Signature, meter: ManifestMeter): ManifestDraft {
  const definition = defineManifest(contents, { now: new Date(), instanceId: newInstanceId() });
  const { parent, components } = contents.ingredients;
  let measuredBytes = Number.POSITIVE_INFINITY;
  return {
    warnings: [parent, ...components].flatMap(({ warnings }) => warnings),
    async measure(placeholder, signal) {
      measuredBytes = await meter(contents, placeholder, signal);
      return measuredBytes;
    },
    async sign(binding, signal) {
      const manifest = await signForReal(bindManifest(definition, binding), signature, signal);
      assert(manifest.length <= measuredBytes, 'a manifest is no larger than it was measured');
      return manifest;
    },
  };
}
