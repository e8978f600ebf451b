import { randomUUID } from 'node:crypto';
import type { Warning } from '#errors/warning.ts';
import type { HardBinding } from '#formats/format-handler.ts';
import type { ManifestDefinition } from '../sdk.ts';
import { exactNumbers } from './exact-numbers.ts';
import type { CustomAssertion, ManifestRequest } from './manifest-author.ts';

const STANDARD_NAMESPACES = ['c2pa.', 'cawg.', 'stds.'] as const;

/** Who makes the manifest, as it stands in the claim and in every action. */
export interface ClaimGenerator {
  readonly name: string;
  readonly version: string;
}

/** An ingredient ready to go into any number of definitions, without being read again. */
export interface PreparedIngredient {
  /** `label` is its name inside the definition: actions refer to it, readers never see it. */
  readonly json: Readonly<Record<string, unknown>> & { readonly label: string };
  /** The manifest store it brings along, with the SHA-256 of its active manifest. */
  readonly store: { readonly identifier: string; readonly bytes: Uint8Array; readonly activeDigest: string } | null;
  /** What the reader found wrong with its active manifest, as status codes of C2PA; a trust list is not asked for. */
  readonly failures: readonly string[];
  readonly warnings: readonly Warning[];
}

/** The ingredients of a manifest, read. */
export interface PreparedIngredients {
  readonly parent: PreparedIngredient;
  readonly components: readonly PreparedIngredient[];
}

/** What a manifest is made from. */
export interface ManifestContents {
  readonly request: ManifestRequest;
  readonly ingredients: PreparedIngredients;
  readonly generator: ClaimGenerator;
}

/** What is new in every manifest; always of the same length in it. */
export interface OneOffs {
  readonly now: Date;
  /** As `newInstanceId` makes it. */
  readonly instanceId: string;
}

/**
 * Everything that a manifest says, in the SDK's terms, apart from its hard binding.
 *
 * The actions are ours and stand with the hard binding among the created assertions of the claim; what the caller
 * asserts is not ours, and goes to the gathered ones (C2PA 2.2 §10.3.2).
 */
export function defineManifest(contents: ManifestContents, { now, instanceId }: OneOffs): ManifestDefinition {
  const { request, ingredients, generator } = contents;
  const all = [ingredients.parent, ...ingredients.components];
  return {
    json: {
      claim_version: 2,
      claim_generator_info: [generator],
      title: request.title,
      format: request.mediaType,
      instance_id: instanceId,
      ingredients: all.map(({ json }) => json),
      assertions: [
        { label: 'c2pa.actions', data: actionsOf(contents, now), created: true },
        ...request.assertions.map(customAssertion),
      ],
    },
    resources: new Map(all.flatMap(({ store }) => (store === null ? [] : [[store.identifier, store.bytes]]))),
  };
}

/** The definition completed by its hard binding. */
export function bindManifest(definition: ManifestDefinition, { label, data }: HardBinding): ManifestDefinition {
  const assertions = definition.json['assertions'] as readonly unknown[];
  return { ...definition, json: { ...definition.json, assertions: [...assertions, { label, data, created: true }] } };
}

/**
 * The caller's own assertions are kept as JSON: the bytes are the caller's value with its keys in the caller's order,
 * where CBOR would sort them. Those that a specification defines are stored as that specification says (most in CBOR),
 * which the SDK knows.
 */
function customAssertion({ label, data }: CustomAssertion): object {
  const standard = STANDARD_NAMESPACES.some((prefix) => label.startsWith(prefix));
  return { label, data: exactNumbers(data), ...(!standard && { kind: 'Json' }) };
}

/** A fresh identifier of an asset's state, of constant length. */
export function newInstanceId(): string {
  return `xmp:iid:${randomUUID()}`;
}

/** The actions assertion: the parent was opened, components were placed, then what happened to the parent. */
function actionsOf({ request, ingredients, generator }: ManifestContents, now: Date): object {
  const { parent, components } = ingredients;
  const when = now.toISOString();
  const recorded = (action: string, ingredient: PreparedIngredient): object => ({
    action,
    when,
    softwareAgent: generator,
    parameters: { ingredientIds: [ingredient.json.label] },
  });
  return {
    actions: [
      recorded('c2pa.opened', parent),
      ...components.map((component) => recorded('c2pa.placed', component)),
      ...request.actions.map((action) => recorded(action, parent)),
    ],
    // What was altered after it was signed, or cannot be read, has a past that nobody knows.
    allActionsIncluded:
      request.allActionsIncluded && [parent, ...components].every(({ warnings }) => warnings.length === 0),
  };
}
