import { randomUUID } from 'node:crypto';
import type { Warning } from '#errors/warning.ts';
import type {
  CustomAssertion,
  IngredientSource,
  LateAssertion,
  ManifestRequest,
  RecordedAction,
  StatedAction,
} from '../manifest-request.ts';
import type { ManifestDefinition } from '../sdk/sdk.ts';
import { exactNumbers } from './sdk-json.ts';

/**
 * The version of C2PA that manifests are made by: the newest whose rules for claims they keep (C2PA 2.4 §10.2.3.2). A
 * manifest can name one only.
 */
const SPECIFICATION_VERSION = '2.4.0';

const STANDARD_NAMESPACES = ['c2pa.', 'cawg.', 'stds.'] as const;

/** The claim generator, as named in the claim and in every action. */
export interface ClaimGenerator {
  readonly name: string;
  readonly version: string;
}

/** An ingredient that was read, ready for any number of definitions. */
export interface PreparedIngredient {
  /** Actions refer to `label`, which is not part of the signed manifest. */
  readonly json: Readonly<Record<string, unknown>> & { readonly label: string };
  /** Its manifest store, with the SHA-256 of the active manifest in it. */
  readonly store: { readonly identifier: string; readonly bytes: Uint8Array; readonly activeDigest: string } | null;
  /** True where the file itself was read, and its manifest validated, whatever the result; false where it was only named. */
  readonly isValidated: boolean;
  /** Status codes of the validation failures of its active manifest; trust is not required. */
  readonly failures: readonly string[];
  readonly warnings: readonly Warning[];
}

/** The ingredients of a manifest, read. */
export interface PreparedIngredients {
  /** Null where the media were created. */
  readonly parent: PreparedIngredient | null;
  readonly components: readonly PreparedIngredient[];
  readonly inputs: readonly PreparedIngredient[];
  /** The label of the ingredient that each source became. */
  readonly labels: ReadonlyMap<IngredientSource, string>;
}

/** Returns all ingredients of a manifest, the parent first. */
export function allOf({ parent, components, inputs }: PreparedIngredients): PreparedIngredient[] {
  return [...(parent === null ? [] : [parent]), ...components, ...inputs];
}

/** The parts of a manifest. */
export interface ManifestContents {
  readonly request: ManifestRequest;
  readonly ingredients: PreparedIngredients;
  readonly generator: ClaimGenerator;
}

/** Values that differ in every manifest, but have a constant length in it. */
export interface UniqueValues {
  readonly now: Date;
  /** As `newInstanceId` makes it. */
  readonly instanceId: string;
}

/**
 * Defines a manifest in the SDK's terms, apart from its late assertions.
 *
 * Our actions and the hard binding are created assertions of the claim; those of the caller are gathered ones (C2PA 2.2
 * §10.3.2). Ingredients are created assertions where each of them was validated: the SDK puts all on the same list.
 */
export function defineManifest(contents: ManifestContents, { now, instanceId }: UniqueValues): ManifestDefinition {
  const { request, ingredients, generator } = contents;
  const all = allOf(ingredients);
  return {
    json: {
      claim_version: 2,
      claim_generator_info: [{ ...generator, specVersion: SPECIFICATION_VERSION }],
      title: request.title,
      format: request.mediaType,
      instance_id: instanceId,
      ingredients: all.map(({ json }) => json),
      assertions: [
        { label: 'c2pa.actions', data: actionsOf(contents, now), created: true },
        ...request.assertions.map(customAssertion),
      ],
    },
    createdLabels: all.every(({ isValidated }) => isValidated) ? ['c2pa.ingredient'] : [],
    resources: new Map(all.flatMap(({ store }) => (store === null ? [] : [[store.identifier, store.bytes]]))),
  };
}

/** Adds the assertions to a definition that are known last: the hard binding, and what else is made of the output. */
export function completeManifest(definition: ManifestDefinition, late: readonly LateAssertion[]): ManifestDefinition {
  const assertions = definition.json['assertions'] as readonly unknown[];
  const created = late.map(({ label, data }) => ({ label, data, created: true }));
  return { ...definition, json: { ...definition.json, assertions: [...assertions, ...created] } };
}

/**
 * Defines an assertion of the caller. It is stored as JSON, which keeps the order of its keys, where CBOR would sort them.
 * The SDK stores assertions of a specification as that specification says (most in CBOR).
 */
function customAssertion({ label, data }: CustomAssertion): object {
  const standard = STANDARD_NAMESPACES.some((prefix) => label.startsWith(prefix));
  return { label, data: exactNumbers(data), ...(!standard && { kind: 'Json' }) };
}

/** Returns a new identifier of an asset's state, of constant length. */
export function newInstanceId(): string {
  return `xmp:iid:${randomUUID()}`;
}

/**
 * Returns the actions assertion: the media created, or the parent opened and the components placed; then what the caller
 * states; then the actions of this service.
 */
function actionsOf(contents: ManifestContents, now: Date): object {
  const { request, ingredients } = contents;
  // The history of an ingredient that was altered or cannot be read is unknown.
  const allActionsIncluded =
    request.allActionsIncluded && allOf(ingredients).every(({ warnings }) => warnings.length === 0);
  const actions = [
    ...firstActions(contents, now),
    ...request.statedActions.map((action) => statedAction(action, ingredients)),
    ...request.actions.map((action) => recordedAction(action, contents, now)),
  ];
  const isIncompleteOpening = actions.length === 1 && ingredients.parent !== null && !allActionsIncluded;
  return { actions: isIncompleteOpening ? [...actions, UNKNOWN_ACTION] : actions, allActionsIncluded };
}

/**
 * Follows `c2pa.opened` where what was done to the parent is not known: alone, that action means that the parent was only
 * saved again (C2PA 2.4 §18.15.3). Without a source type, although the conformance programme asks for one: every
 * term would say something of the content that nobody told the service.
 */
const UNKNOWN_ACTION = {
  action: 'c2pa.unknown',
  description: 'What was done to the parent is not known.',
};

function firstActions({ request, ingredients, generator }: ManifestContents, now: Date): object[] {
  const { parent, components } = ingredients;
  const performed = { when: now.toISOString(), softwareAgent: generator };
  const on = (ingredient: PreparedIngredient): object => ({ parameters: { ingredientIds: [ingredient.json.label] } });
  const { origin } = request;
  const first =
    origin.kind === 'created'
      ? [{ action: 'c2pa.created', digitalSourceType: origin.digitalSourceType }]
      : [parent].flatMap((opened) => (opened === null ? [] : [{ action: 'c2pa.opened', ...performed, ...on(opened) }]));
  return [...first, ...components.map((component) => ({ action: 'c2pa.placed', ...performed, ...on(component) }))];
}

/** Conversions refer to the parent, as C2PA 2.2 asks (§18.14.4.7; not since 2.4). */
const CONVERSIONS: readonly string[] = ['c2pa.repackaged', 'c2pa.transcoded'];

function statedAction(stated: StatedAction, { parent }: PreparedIngredients): object {
  const { action, parameters } = stated;
  const ingredientIds = parent !== null && CONVERSIONS.includes(action) ? { ingredientIds: [parent.json.label] } : {};
  const all = { ...(exactNumbers(parameters ?? {}) as object), ...ingredientIds };
  return { ...stated, ...(Object.keys(all).length > 0 && { parameters: all }) };
}

/** Defines an action of this service. It refers to its ingredients only with the parent among them: readers refuse others. */
function recordedAction(
  { action, on, description }: RecordedAction,
  { ingredients: { parent, labels }, generator }: ManifestContents,
  now: Date,
): object {
  const ingredientIds = on.map((source) => labels.get(source)).filter((label) => label !== undefined);
  return {
    action,
    when: now.toISOString(),
    softwareAgent: generator,
    ...(description !== undefined && { description }),
    ...(parent !== null && ingredientIds.includes(parent.json.label) && { parameters: { ingredientIds } }),
  };
}

/** The generator and the hard binding of manifests that are never used. */
export const DRY_RUN_GENERATOR: ClaimGenerator = { name: 'dry run', version: '0' };
export const DRY_RUN_BINDING: LateAssertion = {
  label: 'c2pa.hash.data',
  data: { exclusions: [], name: 'dry run', alg: 'sha256', hash: new Array<number>(32).fill(0), pad: [] },
};

/** Defines the smallest manifest that the SDK signs. It is never used. */
export function smallestDefinition(): ManifestDefinition {
  const json = { claim_version: 2, claim_generator_info: [DRY_RUN_GENERATOR], assertions: [DRY_RUN_BINDING] };
  return { json, createdLabels: [], resources: new Map() };
}
