import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type LocalSource, pinnedCopyOf } from '#bytes/scratch-copy.ts';
import type { ApiParent, C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { sourceErrors } from '#errors/source-errors.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { InputResolver, OpeningContext } from '#inputs/input-resolver.ts';
import type { IngredientSource, ManifestRequest } from '#provenance/authoring/manifest-author.ts';
import { namesRemoteManifest } from '#provenance/reading/remote-manifest.ts';
import { type IdentifiedFile, identifyFile } from './identify-file.ts';

/** At most so much of an XMP packet is looked at for the address of a remote manifest. */
const XMP_READ_BYTES = 1024 * 1024;

/** Who is the parent and who a component of one signed output, with what there is to warn about. */
export interface Ingredients {
  readonly roles: Pick<ManifestRequest, 'parent' | 'components' | 'allActionsIncluded'>;
  readonly warnings: readonly Warning[];
}

/** The part of a signing operation's `params` that says what an output was made from. */
export type ParentParams = Pick<C2paParams, 'parent' | 'parent_overrides'>;

/** Decides the ingredients of a signed file. */
export async function ingredientsOf(
  file: IdentifiedFile,
  params: ParentParams | undefined,
  inputIndex: number,
  inputs: InputResolver,
  context: OpeningContext,
): Promise<Ingredients> {
  const source = await fileCandidate(file, context);
  return assignRoles(source, await givenIngredient(params, inputIndex, inputs, context));
}

/** An ingredient before its role is known, with what there is to warn about. */
export interface Candidate {
  readonly ingredient: IngredientSource;
  readonly warnings: readonly Warning[];
}

/**
 * Without a given parent the source is the parent. With one, a source that carries a manifest of its own becomes a
 * component, so that no chain is lost.
 */
export function assignRoles(source: Candidate, given: Candidate | null): Ingredients {
  if (given === null) {
    const roles = { parent: source.ingredient, components: [], allActionsIncluded: true };
    return { roles, warnings: source.warnings };
  }
  const components = carriesManifest(source.ingredient) ? [source.ingredient] : [];
  return {
    roles: { parent: given.ingredient, components, allActionsIncluded: false },
    warnings: [...source.warnings, ...given.warnings],
  };
}

export function carriesManifest(ingredient: IngredientSource): boolean {
  return ingredient.kind === 'manifest-store' || ingredient.kind === 'file';
}

/** The parent that the request gives this input, opened; null where it gives none. */
export async function givenIngredient(
  params: ParentParams | undefined,
  inputIndex: number,
  inputs: InputResolver,
  context: OpeningContext,
): Promise<Candidate | null> {
  const given = givenParent(params, inputIndex);
  return given === null ? null : await parentIngredient(given, inputIndex, inputs, context);
}

/** A parent, and where in the request it stands. */
interface GivenParent {
  readonly parent: ApiParent;
  readonly field: string;
}

/** The parent that the request gives this input: its override where it has one (null disables), else the common one. */
function givenParent(params: ParentParams | undefined, inputIndex: number): GivenParent | null {
  const overrides = params?.parent_overrides ?? [];
  const index = overrides.findIndex((candidate) => candidate.input_index === inputIndex);
  const parent = index < 0 ? params?.parent : overrides[index]?.parent;
  if (parent === undefined || parent === null) return null;
  return { parent, field: index < 0 ? 'params.parent' : `params.parent_overrides[${index}].parent` };
}

/** Only what carries a manifest is read by the SDK, which reads files: then the source has to lie on this host. */
export async function fileCandidate(file: IdentifiedFile, context: OpeningContext): Promise<Candidate> {
  const { source, layout } = file;
  const described = { title: source.name, mediaType: layout.mediaType };
  if (layout.manifest === null) {
    return {
      ingredient: { kind: 'plain', ...described },
      warnings: await remoteManifestWarnings(file, context.signal),
    };
  }
  const pinned = await pinnedCopyOf(source, context.scratch, context.signal);
  const { offset, length } = layout.manifest;
  const manifest = {
    sizeBytes: length,
    read: (signal: AbortSignal) => readRange(pinned, offset, length, signal),
  };
  return { ingredient: { ...fileIngredient(pinned), ...described, manifest }, warnings: [] };
}

/** The SDK opens files by their paths: it has to be led to the file that is open, and to find it as it was opened. */
function fileIngredient(
  source: LocalSource,
): Pick<IngredientSource & { kind: 'file' }, 'kind' | 'path' | 'checkUnchanged'> {
  return {
    kind: 'file',
    path: source.openedPath ?? source.localPath,
    checkUnchanged: async (signal) => source.checkUnchanged?.(signal),
  };
}

/** Opens what a given parent names. It stays open as long as the scratch space: the SDK reads it later, by its path. */
async function parentIngredient(
  { parent, field }: GivenParent,
  inputIndex: number,
  inputs: InputResolver,
  context: OpeningContext,
): Promise<Candidate> {
  if (parent.type === 'reference') {
    return { ingredient: { kind: 'reference', reference: parent.reference }, warnings: [] };
  }
  const source = await inputs.openFile(parent.source, inputIndex, context).catch(faultOf(`${field}.source`));
  context.scratch.adopt(source);
  try {
    return await fileCandidate(await identifyFile(source, context.signal), context);
  } catch (error) {
    // What could not be fetched or kept may be had another time: the chain must not be lost for that.
    if (!(error instanceof AppError) || Object.hasOwn(sourceErrors, error.reason)) throw error;
    return await unidentifiedParent(source, error, context);
  }
}

/** Adds to an error where in the request its cause stands: what is said of the file alone could be meant for the input. */
function faultOf(field: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.reason, error.details, { ...error.location, field, cause: error });
  };
}

/** A parent in a format we do not lay out ourselves, such as a picture: the SDK is asked what it can read of it. */
async function unidentifiedParent(
  source: ByteSource,
  error: AppError,
  { scratch, signal }: OpeningContext,
): Promise<Candidate> {
  const mediaType = source.claimedMediaType ?? 'application/octet-stream';
  const ingredient = fileIngredient(await pinnedCopyOf(source, scratch, signal));
  return {
    ingredient: { ...ingredient, title: source.name, mediaType },
    warnings:
      error.reason === 'FORMAT_UNKNOWN'
        ? []
        : [warning('PARENT_NOT_READ', { title: source.name, cause: error.reason, problem: error.message })],
  };
}

/** Remote manifests are never fetched: an address inside an input must not make this service send requests. */
async function remoteManifestWarnings({ source, layout }: IdentifiedFile, signal: AbortSignal): Promise<Warning[]> {
  if (layout.xmp === null) return [];
  const packet = await readRange(source, layout.xmp.offset, Math.min(layout.xmp.length, XMP_READ_BYTES), signal);
  if (!namesRemoteManifest(packet.toString('utf8'))) return [];
  return [warning('REMOTE_MANIFEST_NOT_FETCHED', { title: source.name })];
}
