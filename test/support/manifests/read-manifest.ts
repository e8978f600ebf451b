import assert from 'node:assert/strict';
import { Reader } from '@contentauth/c2pa-node';

/** An ingredient as the official reader shows it. */
export interface ShownIngredient {
  readonly title?: string;
  readonly format?: string;
  readonly instance_id?: string;
  readonly relationship: string;
  readonly label: string;
  readonly active_manifest?: string;
  readonly validation_results?: {
    readonly activeManifest: {
      readonly success: readonly { code: string }[];
      readonly informational: readonly { code: string }[];
      readonly failure: readonly { code: string }[];
    };
  };
}

/** An action as the official reader shows it. */
export interface ShownAction {
  readonly action: string;
  readonly when?: string;
  readonly softwareAgent?: unknown;
  readonly description?: string;
  readonly digitalSourceType?: string;
  readonly parameters?: { readonly ingredients?: readonly { readonly url: string }[] };
}

/** The active manifest of a signed file, as the official reader shows it, and how many manifests there are. */
export interface ShownManifest {
  readonly title: string;
  readonly claim_version: number;
  readonly claim_generator_info: readonly { readonly name: string; readonly version: string }[];
  readonly ingredients: readonly ShownIngredient[];
  readonly assertions: readonly { readonly label: string; readonly data: unknown; readonly created?: boolean }[];
  readonly actions: readonly ShownAction[];
  readonly allActionsIncluded: boolean;
  readonly manifestCount: number;
  readonly successCodes: readonly string[];
}

/** Reads a signed file with the official reader. */
export async function readManifest(bytes: Uint8Array, mimeType = 'audio/wav'): Promise<ShownManifest> {
  const settings = { verify: { remote_manifest_fetch: false } };
  const reader = await Reader.fromAsset({ buffer: Buffer.from(bytes), mimeType }, settings);
  assert(reader !== null);
  const store = reader.json() as unknown as {
    active_manifest: string;
    manifests: Record<string, ShownManifest>;
    validation_results: { activeManifest: { success: { code: string }[] } };
  };
  const manifest = store.manifests[store.active_manifest];
  assert(manifest !== undefined);
  const { data } = manifest.assertions.find(({ label }) => label.startsWith('c2pa.actions')) ?? {};
  return {
    ...manifest,
    ...(data as { actions: ShownAction[]; allActionsIncluded: boolean }),
    manifestCount: Object.keys(store.manifests).length,
    successCodes: store.validation_results.activeManifest.success.map(({ code }) => code),
  };
}
