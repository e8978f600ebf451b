import { type ByteSource, type LocalSource, readRange } from '#bytes/byte-source.ts';
import { pinnedCopyOf } from '#bytes/local-copies.ts';
import type { ApiParent, C2paParams } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import type { InputResolver, OpeningContext } from '#inputs/input-resolver.ts';
import type { IngredientSource } from '#provenance/manifest-request.ts';
import { instanceIdIn, namesRemoteManifest } from '#provenance/xmp-packet.ts';
import { readSignableFile } from './signable-file.ts';

/** Bytes of an XMP packet that are searched for an identifier and for the address of a remote manifest. */
const MAX_XMP_BYTES = 1024 * 1024;

/** A source, and what its bytes tell about it as an ingredient. */
export interface DescribedFile {
  readonly source: ByteSource;
  readonly layout: Pick<MediaLayout, 'mediaType' | 'manifest' | 'xmp'>;
}

/** Parents in the `params` of a signing operation. */
export type ParentParams = Pick<C2paParams, 'parent' | 'parent_overrides'>;

/** An ingredient before its role is known, with warnings. */
export interface Candidate {
  readonly ingredient: IngredientSource;
  readonly warnings: readonly Warning[];
}

export function carriesManifest(ingredient: IngredientSource): boolean {
  return ingredient.kind === 'manifest-store' || ingredient.kind === 'file';
}

/** Opens the parent that the request gives this input; null where it gives none. */
export async function givenIngredient(
  params: ParentParams | undefined,
  inputIndex: number,
  inputs: InputResolver,
  context: OpeningContext,
): Promise<Candidate | null> {
  const given = givenParent(params, inputIndex);
  return given === null ? null : await parentIngredient(given, inputIndex, inputs, context);
}

/** A parent, and the field of the request that gives it. */
interface GivenParent {
  readonly parent: ApiParent;
  readonly field: string;
}

/** Returns the parent that the request gives this input: its override where it has one (null disables), else the common one. */
function givenParent(params: ParentParams | undefined, inputIndex: number): GivenParent | null {
  const overrides = params?.parent_overrides ?? [];
  const index = overrides.findIndex((candidate) => candidate.input_index === inputIndex);
  const parent = index < 0 ? params?.parent : overrides[index]?.parent;
  if (parent === undefined || parent === null) return null;
  return { parent, field: index < 0 ? 'params.parent' : `params.parent_overrides[${index}].parent` };
}

/** Returns the ingredient of a file. One with a manifest is copied to this host first, because the SDK reads it by its path. */
export async function fileCandidate(file: DescribedFile, context: OpeningContext): Promise<Candidate> {
  const { source, layout } = file;
  const described = { title: source.name, mediaType: layout.mediaType };
  if (layout.manifest === null) {
    const xmpText = await xmpTextOf(file, context.signal);
    const instanceId = instanceIdIn(xmpText);
    return {
      ingredient: { kind: 'plain', ...described, ...(instanceId !== null && { instanceId }) },
      // A remote manifest is never fetched: an address inside an input must not cause requests.
      warnings: namesRemoteManifest(xmpText) ? [warning('REMOTE_MANIFEST_NOT_FETCHED', { title: source.name })] : [],
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

/** Describes a file that the SDK opens by its path: that of the open descriptor, checked for changes afterwards. */
function fileIngredient(
  source: LocalSource,
): Pick<IngredientSource & { kind: 'file' }, 'kind' | 'path' | 'checkUnchanged'> {
  return {
    kind: 'file',
    path: source.openedPath ?? source.localPath,
    checkUnchanged: async (signal) => source.checkUnchanged?.(signal),
  };
}

/** Opens a given parent. It stays open as long as the scratch space, because the SDK reads it later, by its path. */
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
    return await fileCandidate(await readSignableFile(source, context.signal), context);
  } catch (error) {
    // A source that could not be fetched or stored may be available later, so its chain must not be dropped.
    if (!(error instanceof AppError) || isInputError(error.reason)) throw error;
    return await unidentifiedParent(source, error, context);
  }
}

/** Adds the field of the request to an error, which without it could be about the input. */
export function faultOf(field: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.reason, error.details, { ...error.location, field, cause: error });
  };
}

/** Describes a parent of a format without a handler, such as a picture: the SDK reads from it what it can. */
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

/** Returns the XMP packet of a file; an empty text where it has none. */
async function xmpTextOf({ source, layout }: DescribedFile, signal: AbortSignal): Promise<string> {
  if (layout.xmp === null) return '';
  const { offset, length } = layout.xmp;
  return (await readRange(source, offset, Math.min(length, MAX_XMP_BYTES), signal)).toString('utf8');
}

/** Warns about a remote manifest. It is never fetched: an address inside an input must not cause requests. */
export async function remoteManifestWarnings(file: DescribedFile, signal: AbortSignal): Promise<Warning[]> {
  const isNamed = namesRemoteManifest(await xmpTextOf(file, signal));
  return isNamed ? [warning('REMOTE_MANIFEST_NOT_FETCHED', { title: file.source.name })] : [];
}
