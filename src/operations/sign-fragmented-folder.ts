import type { SourceFolder } from '#bytes/source-folder.ts';
import type { C2paFragmentedParams } from '#contract/c2pa-requests.ts';
import type { C2paParams } from '#contract/signing.ts';
import type { RecordedAction } from '#provenance/manifest-request.ts';
import type { Publication, PublicationSource } from '#publications/publication.ts';
import { type PublicationFolder, publicationFolder } from '#publications/publication-folder.ts';
import { readInits, readPublication } from '#publications/read-publication.ts';
import { signPublication } from '#publications/sign-publication.ts';
import { type SigningTask, signingTaskOf } from '#publications/signing-task.ts';
import {
  type VerificationContext,
  type VerifiedIngredient,
  verifyAsIngredient,
} from '#publications/verify-as-ingredient.ts';
import {
  assignRoles,
  describeParent,
  type GivenOrigin,
  givenOrigin,
  type Ingredients,
  type ManifestParams,
  manifestRequestOf,
} from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import { refuseWarnings, type StrictParams } from './refuse-warnings.ts';

/**
 * Signs a fragmented publication: reads which fragments belong to which init segment, writes and hashes every fragment
 * once, has the SDK sign one manifest over all renditions, puts it into every init segment, and commits the folder.
 */
export async function signFragmentedFolder(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const { playlist_pattern: playlist, init_pattern: init, frag_pattern: frag } = work.params as C2paFragmentedParams;
  const opening = { ...context, playlistPattern: playlist };
  const folder = publicationFolder(await services.inputs.openFolder(work.input, work.inputIndex, opening));
  const publication = await readPublication(folder, { playlist, init, frag }, context.signal);
  return await signReadPublication(folder, publication, work, context, services);
}

/** Signs a publication that was read from a folder, with the ingredients that its request gives it. */
export async function signReadPublication(
  folder: PublicationFolder,
  publication: Publication,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const inits = await readInits(folder, publication.renditions, context.signal);
  const destination = await reserveDestination(folder, work, context, services);
  const read = { folder, publication, inits };
  const given = await givenOrigin(work.params as C2paParams, work.inputIndex, services, context);
  const { ingredients, contents } = await publicationOrigin(read, given, verificationContext(context, services));
  const signing = { ingredients, actions: [], destination };
  return await signForInput(signingTaskOf(read, contents), signing, work, context, services);
}

/** Reserves the output path of a folder, and returns it. Throws `OUTPUT_TAKEN` or `OUTPUT_TOUCHES_SOURCE`. */
export async function reserveDestination(
  { name }: SourceFolder,
  { output }: InputWork,
  context: InputContext,
  { outputs }: OperationServices,
): Promise<string> {
  const destination = outputs.destinationOf(output, name);
  await context.reserveOutputPath(destination);
  context.reached('resolved');
  return destination;
}

/** Ingredients of a publication, and the digests of its verified parts. */
interface PublicationOrigin extends Pick<VerifiedIngredient, 'contents'> {
  readonly ingredients: Ingredients;
}

/** Returns what verification needs of an operation's context. */
export function verificationContext(
  context: InputContext,
  { fragments: reader, trust }: Pick<OperationServices, 'fragments' | 'trust'>,
): VerificationContext {
  return { ...context, reader, trust: trust.current, describeParent: (source) => describeParent(source, context) };
}

/**
 * Decides the ingredients of a publication, as for files: without a given parent it is an edit of its own source, which is
 * verified completely. If init segments carry different manifests, those after the first are components.
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
export interface InputSigning {
  readonly ingredients: Ingredients;
  /** Actions on the parent before it was signed. */
  readonly actions: readonly RecordedAction[];
  readonly destination: string;
}

/** Signs a publication for an input of a job, with the assertions of its request. Throws `PACKAGING_WARNED` in strict mode. */
export async function signForInput(
  task: SigningTask,
  { ingredients, actions, destination }: InputSigning,
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const params = work.params as StrictParams & ManifestParams;
  const manifestRequest = manifestRequestOf(ingredients, work, services.manifestDefaults, actions);
  const { warnings } = ingredients;
  const environment = {
    ...context,
    checkWarnings: (found: Parameters<typeof refuseWarnings>[0]) => refuseWarnings(found, params),
  };
  return await signPublication(task, { manifestRequest, warnings, destination, key: work }, environment, services);
}
