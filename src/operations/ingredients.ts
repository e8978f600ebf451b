import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import { type ApiAction, digitalSourceTypeUri } from '#contract/actions.ts';
import type { C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { readVerifiableFile } from '#formats/formats.ts';
import type { OpeningContext } from '#inputs/input-opener.ts';
import type { InputResolver } from '#inputs/input-resolver.ts';
import { instanceIdOf } from '#provenance/instance-id.ts';
import type { ManifestDraft } from '#provenance/manifest-author.ts';
import type {
  Creation,
  IngredientSource,
  ManifestRequest,
  RecordedAction,
  StatedAction,
} from '#provenance/manifest-request.ts';
import {
  type DescribedFile,
  describeIngredient,
  describeUnknown,
  type UnassignedIngredient,
} from './describe-ingredient.ts';
import type { InputContext, InputWork, OperationServices } from './operation.ts';

/** Parents in the `params` of a signing operation. */
type ParentParams = Pick<C2paParams, 'parent' | 'parent_overrides'>;

function carriesManifest(ingredient: IngredientSource): boolean {
  return ingredient.kind === 'manifest-store' || ingredient.kind === 'file';
}

/**
 * Opens the parent that the request gives this input: its override where it has one (null disables), else the common one; null where
 * it gives none. The parent stays open as long as the scratch space, because the SDK reads it later, by its path.
 */
export async function givenIngredient(
  params: ParentParams | undefined,
  inputIndex: number,
  inputs: InputResolver,
  context: OpeningContext,
): Promise<UnassignedIngredient | null> {
  const overrides = params?.parent_overrides ?? [];
  const index = overrides.findIndex((candidate) => candidate.input_index === inputIndex);
  const parent = index < 0 ? params?.parent : overrides[index]?.parent;
  if (parent === undefined || parent === null) return null;
  if (parent.type === 'reference') {
    return { ingredient: { kind: 'reference', reference: parent.reference }, warnings: [] };
  }
  const field = index < 0 ? 'params.parent' : `params.parent_overrides[${index}].parent`;
  const source = await inputs.openFile(parent.source, inputIndex, context).catch(faultOf(`${field}.source`));
  context.scratch.adopt(source);
  return await describeParent(source, context);
}

/**
 * Returns the ingredient of an open file that a manifest is to record as a parent. From one of a format without a handler, such as a
 * picture, the SDK reads what it can.
 */
export async function describeParent(source: ByteSource, context: OpeningContext): Promise<UnassignedIngredient> {
  try {
    return await describeIngredient(await readVerifiableFile(source, context.signal), context);
  } catch (error) {
    // A source that could not be fetched or stored may be available later, so its chain must not be dropped.
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    const { reason, message } = error;
    const details = { title: source.name, cause: reason, problem: message };
    return {
      ingredient: await describeUnknown(source, error, context),
      warnings: reason === 'FORMAT_UNKNOWN' ? [] : [warning('PARENT_NOT_READ', details)],
    };
  }
}

/** Adds the field of the request to an error, which without it could be about the input. */
export function faultOf(field: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.reason, error.details, { ...error.location, field, cause: error });
  };
}

/** Origin and further ingredients of one signed output, with warnings. */
export interface Ingredients {
  readonly roles: Pick<ManifestRequest, 'origin' | 'components' | 'inputs'> & {
    /** True where only actions of this service lie between the origin and the output, unless the caller states some. */
    readonly isSourceOpened: boolean;
    /** False where something was done that no action says: the source was altered, or a part of it left out. */
    readonly isHistoryKnown: boolean;
  };
  readonly warnings: readonly Warning[];
}

/** The origin that the request gives an input; null where it gives none. */
export type GivenOrigin = { readonly parent: UnassignedIngredient } | GivenCreation | null;

/** The creation of media that were made anew. A configured one gives way to a manifest in the source. */
interface GivenCreation {
  readonly creation: Creation;
  readonly isDefault: boolean;
}

/** The `params` of a signing operation that go into the manifest as they are. */
export type ManifestParams = Pick<C2paParams, 'assertions' | 'actions' | 'all_actions_included'>;

/** Returns the origin that the request gives this input: a parent, or the creation of the media; else the configured creation. */
export async function givenOrigin(
  params: C2paParams | undefined,
  inputIndex: number,
  { inputs, manifestDefaults: defaults }: Pick<OperationServices, 'inputs' | 'manifestDefaults'>,
  context: OpeningContext,
): Promise<GivenOrigin> {
  const parent = await givenIngredient(params, inputIndex, inputs, context);
  if (parent !== null) return { parent };
  const term = params?.digital_source_type === undefined ? defaults.digital_source_type : params.digital_source_type;
  if (term === undefined || term === null) return null;
  const creation = { kind: 'created', digitalSourceType: digitalSourceTypeUri(term) } as const;
  return { creation, isDefault: params?.digital_source_type === undefined };
}

/**
 * Returns the creation of media that were made from some sources; null where the request gives none. Throws
 * `ORIGIN_HAS_MANIFEST` where one of the sources carries a manifest, which says what it was made from; a configured
 * creation is ignored then.
 */
export function creationOf(given: GivenOrigin, sources: readonly IngredientSource[]): Creation | null {
  if (given === null || 'parent' in given) return null;
  const signed = sources.find(carriesManifest);
  if (signed === undefined) return given.creation;
  if (given.isDefault) return null;
  const title = 'title' in signed ? signed.title : '';
  throw new AppError('ORIGIN_HAS_MANIFEST', { title }, { field: 'params.digital_source_type' });
}

/** Returns the ingredients of media that were made anew: none. */
export function createdIngredients(creation: Creation, warnings: readonly Warning[]): Ingredients {
  const roles = { origin: creation, components: [], inputs: [], isSourceOpened: false, isHistoryKnown: true };
  return { roles, warnings };
}

/**
 * Assigns the roles of ingredients. Without a given origin the source is the parent. With a given parent, a source with a
 * manifest of its own becomes a component, so that its provenance chain is kept. Throws `ORIGIN_HAS_MANIFEST`.
 */
export function assignRoles(source: UnassignedIngredient, given: GivenOrigin): Ingredients {
  const creation = creationOf(given, [source.ingredient]);
  if (creation !== null) return createdIngredients(creation, source.warnings);
  const parent = given !== null && 'parent' in given ? given.parent : source;
  const isSourceOpened = parent === source;
  const components = !isSourceOpened && carriesManifest(source.ingredient) ? [source.ingredient] : [];
  return {
    roles: { origin: parent.ingredient, components, inputs: [], isSourceOpened, isHistoryKnown: true },
    warnings: [...new Set([source, parent])].flatMap(({ warnings }) => warnings),
  };
}

/** Returns the contents of a manifest apart from its title and hard binding. `actions` are those of the operation. */
export function manifestRequestOf(
  { roles: { isSourceOpened, isHistoryKnown, ...roles } }: Ingredients,
  work: Pick<InputWork, 'identity' | 'params'>,
  defaults: Pick<OperationServices['manifestDefaults'], 'actions'>,
  actions: readonly RecordedAction[] = [],
): Omit<ManifestRequest, 'title' | 'mediaType'> {
  const params = work.params as ManifestParams | undefined;
  assert(work.identity !== null, 'an input that is signed has an identity');
  const statedActions = (params?.actions ?? defaults.actions).map(statedAction);
  const isComplete = params?.all_actions_included ?? (isSourceOpened && statedActions.length === 0);
  return {
    ...roles,
    identity: work.identity,
    assertions: params?.assertions ?? [],
    statedActions,
    actions,
    allActionsIncluded: isComplete && isHistoryKnown,
  };
}

/** Drafts the manifest of a file: decides its ingredients, and has the SDK read them. Returns it with warnings. */
export async function draftManifest(
  file: DescribedFile,
  title: string,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<{ readonly draft: ManifestDraft; readonly warnings: readonly Warning[] }> {
  const given = await givenOrigin(work.params as C2paParams | undefined, work.inputIndex, services, context);
  const ingredients = assignRoles(await describeIngredient(file, context), given);
  const request = manifestRequestOf(ingredients, work, services.manifestDefaults);
  const described = { title, mediaType: file.layout.mediaType, instanceId: instanceIdOf(work) };
  const draft = await context.scratch.withHeartbeats(() =>
    services.author.draft({ ...described, ...request }, context.signal),
  );
  return { draft, warnings: [...ingredients.warnings, ...draft.warnings] };
}

/** Translates an action of the request into the terms of C2PA. */
export function statedAction(given: ApiAction): StatedAction {
  const { action, when, description, digital_source_type: term, software_agent: agent, parameters } = given;
  return {
    action,
    ...(when !== undefined && { when }),
    ...(agent !== undefined && { softwareAgent: typeof agent === 'string' ? { name: agent } : agent }),
    ...(description !== undefined && { description }),
    ...(term !== undefined && { digitalSourceType: digitalSourceTypeUri(term) }),
    ...(parameters !== undefined && { parameters }),
  } as StatedAction;
}
