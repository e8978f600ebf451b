import type { HardBinding } from '#formats/format-handler.ts';
import { type Signature, signOnTrial } from '../identity/signing-pass.ts';
import {
  bindManifest,
  defineManifest,
  type ManifestContents,
  type OneOffs,
  type PreparedIngredient,
} from './manifest-definition.ts';

/** Guards against a signature box that comes out a little larger than on trial; what is not needed becomes zeros. */
const SLACK_BYTES = 16;
/** Titles count as if they had the next multiple of so many bytes, so that the files of a batch share one measure. */
const TITLE_STEP_BYTES = 64;
/** Measures that are remembered, and how large the description of one may be. */
const MAX_REMEMBERED = 64;
const MAX_KEY_CHARACTERS = 32 * 1024;

/** Stands for what differs in every manifest, but always has the same length. */
const TYPICAL: OneOffs = { now: new Date(0), instanceId: 'xmp:iid:00000000-0000-4000-8000-000000000000' };

/** Tells an upper bound of the size in bytes that a manifest will have. */
export type ManifestMeter = (
  contents: ManifestContents,
  placeholder: HardBinding,
  signal: AbortSignal,
) => Promise<number>;

/**
 * Makes a meter, which signs manifests on trial. A batch of files asks for nearly the same manifest over and over: what
 * is measured is a manifest of the same size or a little larger, whose measure is remembered.
 */
export function createManifestMeter(signature: Signature): ManifestMeter {
  const remembered = new Map<string, number>();
  return async (contents, placeholder, signal) => {
    const definition = bindManifest(defineManifest(typicalContents(contents), TYPICAL), placeholder);
    const key = definition.resources.size === 0 ? JSON.stringify(definition.json) : null;
    const known = key === null ? undefined : remembered.get(key);
    if (known !== undefined) return known;

    const sizeBytes = (await signOnTrial(definition, signature, signal)).length + SLACK_BYTES;
    if (key !== null && key.length <= MAX_KEY_CHARACTERS) remember(remembered, key, sizeBytes);
    return sizeBytes;
  };
}

function remember(remembered: Map<string, number>, key: string, sizeBytes: number): void {
  const [oldest] = remembered.keys();
  if (oldest !== undefined && remembered.size >= MAX_REMEMBERED) remembered.delete(oldest);
  remembered.set(key, sizeBytes);
}

function typicalContents({ request, ingredients, generator }: ManifestContents): ManifestContents {
  const { parent, components } = ingredients;
  return {
    request: { ...request, title: typicalTitle(request.title) },
    ingredients: { parent: typicalIngredient(parent), components: components.map(typicalIngredient) },
    generator,
  };
}

function typicalIngredient(ingredient: PreparedIngredient): PreparedIngredient {
  const { title, instance_id: instanceId } = ingredient.json;
  const json = {
    ...ingredient.json,
    ...(typeof title === 'string' && { title: typicalTitle(title) }),
    // An ingredient with a manifest keeps the identifier that this manifest gives it.
    ...(ingredient.store === null && instanceId !== undefined && { instance_id: TYPICAL.instanceId }),
  };
  return { ...ingredient, json };
}

/** A longer text takes no fewer bytes in CBOR. */
function typicalTitle(title: string): string {
  return 'x'.repeat((Math.floor(Buffer.byteLength(title) / TITLE_STEP_BYTES) + 1) * TITLE_STEP_BYTES);
}
