import assert from 'node:assert';
import { statSync } from 'node:fs';
import { type Warning, warning } from '#errors/warning.ts';
import type { IngredientSource } from '../authoring/manifest-author.ts';
import { newInstanceId, type PreparedIngredient } from '../authoring/manifest-definition.ts';
import { stillMediaTypeOf } from '../authoring/still-media-type.ts';
import { type Signature, trialSignature } from '../identity/signing-pass.ts';
import {
  activeManifestOf,
  type Findings,
  type IngredientJson,
  ingredientStoreOf,
  MANIFEST_STORE_TYPE,
  signIngredient,
} from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';
import { type ChainAllowance, MAX_STORE_BYTES } from './chain-limits.ts';

/** What an ingredient is to the output, and the label that actions name it by. */
interface IngredientPlace {
  readonly relationship: 'parentOf' | 'componentOf';
  readonly label: string;
}

/** What reading the ingredients of one output takes. */
export interface ReadingContext {
  readonly signature: Signature;
  /** Shared by all of them. */
  readonly allowance: ChainAllowance;
  readonly signal: AbortSignal;
}

type SourceOf<Kind extends IngredientSource['kind']> = Extract<IngredientSource, { kind: Kind }>;

/** What the SDK may take to validate a file: so long, and longer for what it has to hash. */
const VALIDATION_TIMEOUT_MS = 60_000;
const SLOWEST_HASHING_BYTES_PER_S = 5 * 1024 * 1024;
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
  context: ReadingContext,
): Promise<PreparedIngredient> | PreparedIngredient {
  switch (source.kind) {
    case 'reference':
      // The title is what readers show of an ingredient, and free text.
      return { json: { title: source.reference, ...place }, store: null, failures: [], warnings: [] };
    case 'plain':
      return plain(source, place);
    case 'file':
      return readUnchangedFile(source, place, context);
    case 'manifest-store':
      return readStore(source, place, context);
  }
}

function plain(
  { title, mediaType }: Pick<SourceOf<'plain'>, 'title' | 'mediaType'>,
  place: IngredientPlace,
  warnings: readonly Warning[] = [],
): PreparedIngredient {
  const json = { title, format: mediaType, instance_id: newInstanceId(), ...place };
  return { json, store: null, failures: [], warnings };
}

/** What is said of a file must be true of the file that was opened: a change meanwhile rejects. */
async function readUnchangedFile(
  source: SourceOf<'file'>,
  place: IngredientPlace,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const prepared = await readSignedFile(source, place, context);
  await source.checkUnchanged?.(context.signal);
  return prepared;
}

async function readSignedFile(
  source: SourceOf<'file'>,
  place: IngredientPlace,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, manifest } = source;
  if (manifest !== undefined && manifest.sizeBytes > MAX_STORE_BYTES) {
    return plain(source, place, [tooLarge(title, manifest.sizeBytes)]);
  }
  const stated = await manifest?.read(context.signal);
  const timeoutMs =
    VALIDATION_TIMEOUT_MS +
    ((statSync(source.path, { throwIfNoEntry: false })?.size ?? 0) / SLOWEST_HASHING_BYTES_PER_S) * 1000;
  const late = AbortSignal.timeout(Math.ceil(timeoutMs));
  try {
    const mediaType = (await stillMediaTypeOf(source.path)) ?? source.mediaType;
    const signal = AbortSignal.any([context.signal, late]);
    return await readMedia({ ...source, mediaType }, stated, place, { ...context, signal });
  } catch (error) {
    context.signal.throwIfAborted();
    const problem = late.aborted ? `it took longer than ${Math.round(timeoutMs / 1000)} s` : sdkProblem(error);
    return plain(source, place, [warning('INGREDIENT_UNREADABLE', { title, problem })]);
  }
}

/**
 * The media is read and validated once, and not before it is known what that costs. The trial manifest tells whether the
 * SDK can carry what it read (it accepts an unreadable manifest as an ingredient, and fails only when it signs), and holds
 * the manifest store to take along.
 */
async function readMedia(
  source: SourceOf<'file'>,
  stated: Uint8Array | undefined,
  place: IngredientPlace,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, mediaType } = source;
  const store = stated ?? (await storeUnvalidated(source, context));
  if (store === null) return plain(source, place);
  if (store.length > MAX_STORE_BYTES) return plain(source, place, [tooLarge(title, store.length)]);
  const { exceeded, activeDigest } = context.allowance.admit(store);
  if (exceeded !== null) return plain(source, place, [warning('INGREDIENT_TOO_COMPLEX', { title, ...exceeded })]);
  const json = { title, format: mediaType, ...place };
  const read = await tryToCarry(source, json, true, context);
  if (read.ingredient.active_manifest === undefined) return plain(source, place);
  const bytes = await ingredientStoreOf(read.store, context.signal);
  assert(bytes !== null, 'an ingredient with an active manifest has a manifest store');
  return withStore({ ...read.ingredient, ...json }, place, { bytes, activeDigest });
}

/** The manifest store of a file in a format that is not laid out here: the SDK looks for it, and validates nothing yet. */
async function storeUnvalidated(source: SourceOf<'file'>, context: ReadingContext): Promise<Uint8Array | null> {
  const json = { title: source.title, format: source.mediaType };
  const { ingredient, store } = await tryToCarry(source, json, false, context);
  return ingredient.active_manifest === undefined ? null : await ingredientStoreOf(store, context.signal);
}

function tryToCarry(
  source: SourceOf<'file'>,
  json: Readonly<Record<string, unknown>>,
  isValidated: boolean,
  { signature, signal }: ReadingContext,
): ReturnType<typeof signIngredient> {
  return signIngredient(trialDefinition(), json, source, isValidated, trialSignature(signature), signal);
}

async function readStore(
  source: SourceOf<'manifest-store'>,
  place: IngredientPlace,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, mediaType, manifestStore: bytes, validationResults } = source;
  try {
    if (bytes.length > MAX_STORE_BYTES) return plain(source, place, [tooLarge(title, bytes.length)]);
    const { exceeded, activeDigest } = context.allowance.admit(bytes);
    if (exceeded !== null) return plain(source, place, [warning('INGREDIENT_TOO_COMPLEX', { title, ...exceeded })]);
    const activeManifest = await activeManifestOf(bytes, context.signal);
    if (activeManifest === null) return plain(source, place);
    const json = {
      title,
      format: mediaType,
      active_manifest: activeManifest,
      ...(validationResults !== null && { validation_results: validationResults }),
    };
    const prepared = withStore(json, place, { bytes, activeDigest });
    if (validationResults !== null) return prepared;
    return { ...prepared, warnings: [warning('INGREDIENT_NOT_VALIDATED', { title })] };
  } catch (error) {
    context.signal.throwIfAborted();
    return plain(source, place, [warning('INGREDIENT_UNREADABLE', { title, problem: sdkProblem(error) })]);
  }
}

function tooLarge(title: string, sizeBytes: number): Warning {
  return warning('INGREDIENT_TOO_LARGE', { title, sizeBytes, limitBytes: MAX_STORE_BYTES });
}

function withStore(
  json: IngredientJson & { readonly title: string },
  place: IngredientPlace,
  store: { readonly bytes: Uint8Array; readonly activeDigest: string },
): PreparedIngredient {
  const identifier = `${place.label}.c2pa`;
  const failures = failuresIn(json.validation_results?.activeManifest);
  return {
    json: { ...json, ...place, manifest_data: { format: MANIFEST_STORE_TYPE, identifier } },
    store: { identifier, ...store },
    failures,
    warnings: failures.length === 0 ? [] : [invalid(json.title, failures)],
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

function failuresIn(findings: Findings | undefined): string[] {
  const codes = (findings?.failure ?? []).map(({ code }) => code).filter((code) => !TOLERATED.has(code));
  return [...new Set(codes)];
}

function invalid(title: string, codes: readonly string[]): Warning {
  const details = { title, codes: codes.slice(0, MAX_NAMED_FINDINGS), codeCount: codes.length };
  return warning('INGREDIENT_INVALID', details);
}
