import assert from 'node:assert';
import type { ManifestAuthor, ManifestDraft, ManifestRequest } from './manifest-author.ts';
import {
  bindManifest,
  type ClaimGenerator,
  defineManifest,
  type PreparedIngredient,
  type PreparedIngredients,
} from './manifest-definition.ts';
import { readIngredient } from './read-ingredient.ts';
import type { ManifestDefinition } from './sdk.ts';
import { type Signature, signForReal, signOnTrial } from './signing-pass.ts';

/** What an author signs with, and in whose name. */
export interface ManifestAuthorParts extends Signature {
  readonly generator: ClaimGenerator;
}

/** Guards against a signature box that comes out a little larger than on trial; what is not needed becomes zeros. */
const SLACK_BYTES = 16;

/**
 * Makes manifests with the official SDK. Each is signed on trial to learn its size, then for real; what the two passes
 * have in common is settled in the draft.
 */
export function createManifestAuthor({ generator, ...signature }: ManifestAuthorParts): ManifestAuthor {
  return {
    async draft(request, signal) {
      const ingredients = await readIngredients(request, signature, signal);
      const definition = defineManifest(request, ingredients, generator, new Date());
      const warnings = [ingredients.parent, ...ingredients.components].flatMap((ingredient) => ingredient.warnings);
      return draftOf(definition, warnings, signature);
    },
  };
}

async function readIngredients(
  request: ManifestRequest,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredients> {
  const parent = await readIngredient(request.parent, 'parentOf', 'parent', signature, signal);
  const components: PreparedIngredient[] = [];
  // One after the other: the SDK may need much memory to read the media of one.
  for (const [index, component] of request.components.entries()) {
    components.push(await readIngredient(component, 'componentOf', `component-${index}`, signature, signal));
  }
  return { parent, components };
}

function draftOf(definition: ManifestDefinition, warnings: readonly string[], signature: Signature): ManifestDraft {
  let measuredBytes = Number.POSITIVE_INFINITY;
  return {
    warnings,
    async measure(placeholder, signal) {
      const manifest = await signOnTrial(bindManifest(definition, placeholder), signature, signal);
      measuredBytes = manifest.length + SLACK_BYTES;
      return measuredBytes;
    },
    async sign(binding, signal) {
      const manifest = await signForReal(bindManifest(definition, binding), signature, signal);
      assert(manifest.length <= measuredBytes, 'a manifest is no larger than it was measured');
      return manifest;
    },
  };
}
