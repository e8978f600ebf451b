import assert from 'node:assert';
import { type Signature, signForReal } from '../identity/signing-pass.ts';
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
  request: ManifestRequest,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredients> {
  const place = { relationship: 'parentOf', label: 'parent' } as const;
  const parent = await readIngredient(request.parent, place, signature, signal);
  const components: PreparedIngredient[] = [];
  // One after the other: the SDK may need much memory to read the media of one.
  for (const [index, component] of request.components.entries()) {
    const place = { relationship: 'componentOf', label: `component-${index}` } as const;
    components.push(await readIngredient(component, place, signature, signal));
  }
  return { parent, components };
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
