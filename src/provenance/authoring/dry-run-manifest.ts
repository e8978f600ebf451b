import type { ManifestDefinition } from '../sdk.ts';
import type { CustomAssertion } from './manifest-author.ts';
import { bindManifest, defineManifest, newInstanceId } from './manifest-definition.ts';

const GENERATOR = { name: 'trial', version: '0' };

const HARD_BINDING = {
  label: 'c2pa.hash.data',
  data: { exclusions: [], name: 'trial', alg: 'sha256', hash: new Array<number>(32).fill(0), pad: [] },
} as const;

/** Defines a manifest that stands alone, for `judgeManifest`: it is bound to no asset, and is made for its assertions or its signature. */
export function dryRunManifest(assertions: readonly CustomAssertion[] = []): ManifestDefinition {
  const json = { title: 'trial', relationship: 'parentOf', label: 'parent' };
  const parent = { json, store: null, failures: [], warnings: [] };
  const request = {
    title: 'trial',
    mediaType: 'application/octet-stream',
    assertions,
    parent: { kind: 'reference', reference: 'trial' },
    components: [],
    actions: [],
    allActionsIncluded: true,
  } as const;
  const contents = { request, ingredients: { parent, components: [] }, generator: GENERATOR };
  return bindManifest(defineManifest(contents, { now: new Date(), instanceId: newInstanceId() }), HARD_BINDING);
}
