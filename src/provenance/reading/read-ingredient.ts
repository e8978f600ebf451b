import assert from 'node:assert';
import { type Warning, warning } from '#errors/warning.ts';
import type { IngredientSource } from '../authoring/manifest-author.ts';
import { newInstanceId, type PreparedIngredient } from '../authoring/manifest-definition.ts';
import { stillMediaTypeOf } from '../authoring/still-media-type.ts';
import { type Signature, trialSignature } from '../identity/signing-pass.ts';
import {
  activeManifestOf,
  ingredientStoreOf,
  MANIFEST_STORE_TYPE,
  signIngredient,
  type ValidationResults,
} from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';

/** What an ingredient is to the output, and the label that actions name it by. */
interface IngredientPlace {
  readonly relationship: 'parentOf' | 'componentOf';
  readonly label: string;
}

type SourceOf<Kind extends IngredientSource['kind']> = Extract<IngredientSource, { kind: Kind }>;

/** A parent may bring so much of a manifest store; every output carries it. */
const MAX_STORE_BYTES = 64 * 1024 * 1024;
/** A warning names at most so many findings. */
const MAX_NAMED_FINDINGS = 5;

const TOLERATED = new Set(['signingCredential.untrusted']);

/**
 * Reads an ingredient. Whatever cannot be read whole is attached as far as it can be, with a warning; only an abort
 * rejects.
 */
export function readIngredient(
  source: IngredientSource,
  place: IngredientPlace,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredient> | PreparedIngredient {
  switch (source.kind) {
    case 'reference':
      // The title is what readers show of an ingredient, and free text.
      return { json: { title: source.reference, ...place }, store: null, warnings: [] };
    case 'plain':
      return plain(source, place);
    case 'file':
      return readUnchangedFile(source, place, signature, signal);
    case 'manifest-store':
      return readStore(source, place, signal);
  }
}

function plain(
  { title, mediaType }: Pick<SourceOf<'plain'>, 'title' | 'mediaType'>,
  place: IngredientPlace,
  warnings: readonly Warning[] = [],
): PreparedIngredient {
  const json = { title, format: mediaType, instance_id: newInstanceId(), ...place };
  return { json, store: null, warnings };
}

/** What is said of a file must be true of the file that was opened: a change meanwhile rejects. */
async function readUnchangedFile(
  source: SourceOf<'file'>,
  place: IngredientPlace,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredient> {
  const prepared = await readSignedFile(source, place, signature, signal);
  await source.checkUnchanged?.(signal);
  return prepared;
}

/**
 * The media is read and validated once. The trial manifest tells whether the SDK can carry what it read (it accepts an
 * unreadable manifest as an ingredient, and fails only when it signs), and holds the manifest store to take along.
 */
async function readSignedFile(
  source: SourceOf<'file'>,
  place: IngredientPlace,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredient> {
  try {
    const mediaType = (await stillMediaTypeOf(source.path)) ?? source.mediaType;
    return await readMedia({ ...source, mediaType }, place, signature, signal);
  } catch (error) {
    signal.throwIfAborted();
    return plain(source, place, [
      warning('INGREDIENT_UNREADABLE', { title: source.title, problem: sdkProblem(error) }),
    ]);
  }
}

async function readMedia(
  source: SourceOf<'file'>,
  place: IngredientPlace,
  signature: Signature,
  signal: AbortSignal,
): Promise<PreparedIngredient> {
  const { title, mediaType } = source;
  const json = { title, format: mediaType, ...place };
  const read = await signIngredient(trialDefinition(), json, source, trialSignature(signature), signal);
  if (read.ingredient.active_manifest === undefined) return plain(source, place);
  const bytes = await ingredientStoreOf(read.store, signal);
  assert(bytes !== null, 'an ingredient with an active manifest has a manifest store');
  if (bytes.length > MAX_STORE_BYTES) {
    const details = { title, sizeBytes: bytes.length, limitBytes: MAX_STORE_BYTES };
    return plain(source, place, [warning('INGREDIENT_TOO_LARGE', details)]);
  }
  const warnings = findingWarnings(title, read.ingredient.validation_results);
  return withStore({ ...read.ingredient, ...json }, place, bytes, warnings);
}

async function readStore(
  source: SourceOf<'manifest-store'>,
  place: IngredientPlace,
  signal: AbortSignal,
): Promise<PreparedIngredient> {
  const { title, mediaType, manifestStore, validationResults } = source;
  try {
    const activeManifest = await activeManifestOf(manifestStore, signal);
    if (activeManifest === null) return plain(source, place);
    const json = {
      title,
      format: mediaType,
      active_manifest: activeManifest,
      ...(validationResults !== null && { validation_results: validationResults }),
    };
    const warnings =
      validationResults === null
        ? [warning('INGREDIENT_NOT_VALIDATED', { title })]
        : findingWarnings(title, validationResults);
    return withStore(json, place, manifestStore, warnings);
  } catch (error) {
    signal.throwIfAborted();
    return plain(source, place, [warning('INGREDIENT_UNREADABLE', { title, problem: sdkProblem(error) })]);
  }
}

function withStore(
  json: object,
  place: IngredientPlace,
  bytes: Uint8Array,
  warnings: readonly Warning[],
): PreparedIngredient {
  const identifier = `${place.label}.c2pa`;
  return {
    json: { ...json, ...place, manifest_data: { format: MANIFEST_STORE_TYPE, identifier } },
    store: { identifier, bytes },
    warnings,
  };
}

/** The least that the SDK signs: any hard binding will do, the manifest is thrown away. */
function trialDefinition(): { json: Record<string, unknown>; resources: Map<string, Uint8Array> } {
  const data = { exclusions: [], name: 'trial', alg: 'sha256', hash: new Array<number>(32).fill(0), pad: [] };
  const json = {
    claim_version: 2,
    claim_generator_info: [{ name: 'trial', version: '0' }],
    assertions: [{ label: 'c2pa.hash.data', data }],
  };
  return { json, resources: new Map() };
}

function findingWarnings(title: string, results: ValidationResults | undefined): Warning[] {
  const found = (results?.activeManifest?.failure ?? []).map(({ code }) => code).filter((code) => !TOLERATED.has(code));
  const codes = [...new Set(found)];
  if (codes.length === 0) return [];
  const details = { title, codes: codes.slice(0, MAX_NAMED_FINDINGS), codeCount: codes.length };
  return [warning('INGREDIENT_INVALID', details)];
}
