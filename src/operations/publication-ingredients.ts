import type { RecordedAction } from '#provenance/manifest-request.ts';
import type { PublicationSource } from '#publications/publication.ts';
import { signPublication } from '#publications/sign-publication.ts';
import type { SigningTask } from '#publications/signing-task.ts';
import {
  type VerificationContext,
  type VerifiedIngredient,
  verifyAsIngredient,
} from '#publications/verify-as-ingredient.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import { assignRoles, type GivenOrigin, type Ingredients, type StatedParams, statementOf } from './origin.ts';
import { refuseWarnings, type StrictParams } from './strict.ts';

/** Ingredients of a publication, and the digests of its verified parts. */
export interface PublicationOrigin extends Pick<VerifiedIngredient, 'contents'> {
  readonly ingredients: Ingredients;
}

/** Returns what verification needs of an operation's context. */
export function verificationContext(
  context: InputContext,
  { fragments: reader }: Pick<OperationServices, 'fragments'>,
): VerificationContext {
  return { ...context, reader };
}

/**
 * Decides the ingredients of a publication, as for files: without a given parent it is an edit of its own source, which is
 * verified completely. Where init segments carry different manifests, those after the first are components.
 */
export async function publicationOrigin(
  read: PublicationSource,
  given: GivenOrigin,
  context: VerificationContext,
): Promise<PublicationOrigin> {
  const { ingredient, others, warnings, contents } = await verifyAsIngredient(read, context);
  const { roles, ...rest } = assignRoles({ ingredient, warnings }, given);
  const isHistoryKnown = warnings.length === 0;
  const components = [...roles.components, ...others];
  return { ingredients: { ...rest, roles: { ...roles, components, isHistoryKnown } }, contents };
}

/** Origin and destination of a publication that is signed. */
export interface PublicationStatement {
  readonly ingredients: Ingredients;
  /** Actions on the parent before it was signed. */
  readonly actions: readonly RecordedAction[];
  readonly destination: string;
}

/** Signs a publication for an input of a job, with the assertions of its request. Throws `PACKAGING_WARNED` in strict mode. */
export async function signForInput(
  task: SigningTask,
  { ingredients, actions, destination }: PublicationStatement,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const params = work.params as StrictParams & StatedParams;
  const statement = { ...statementOf(ingredients, params, services.stated), actions };
  const { warnings } = ingredients;
  const environment = {
    ...context,
    checkWarnings: (found: Parameters<typeof refuseWarnings>[0]) => refuseWarnings(found, params),
  };
  return await signPublication(task, { statement, warnings, destination, key: work }, environment, services);
}
