import assert from 'node:assert';
import { statSync } from 'node:fs';
import { type Warning, warning } from '#errors/warning.ts';
import { type ChainAllowance, MAX_STORE_BYTES } from '../chain-limits.ts';
import type { IngredientSource } from '../manifest-request.ts';
import {
  activeManifestOf,
  type IngredientJson,
  type IngredientValidation,
  ingredientStoreOf,
  MANIFEST_STORE_TYPE,
  signIngredient,
} from '../sdk/sdk.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import type { Signer } from '../signer.ts';
import { stillMediaTypeOf } from '../still-media-type.ts';
import type { TrustLists } from '../trust-lists.ts';
import { failuresIn, VALID_ASSET, withFailures } from '../validation-report.ts';
import { newInstanceId, type PreparedIngredient, smallestDefinition } from './manifest-definition.ts';
import { zeroSignature } from './sign-manifest.ts';

/** The relationship of an ingredient to the output, and the label by which actions refer to it. */
interface IngredientRole {
  readonly relationship: 'parentOf' | 'componentOf' | 'inputTo';
  readonly label: string;
}

/** The context in which the ingredients of one output are read. */
interface ReadingContext {
  readonly signer: Signer;
  /** Trust lists that files are validated with. */
  readonly trust: TrustLists;
  /** Shared by all ingredients of the output. */
  readonly allowance: ChainAllowance;
  readonly signal: AbortSignal;
}

type SourceOf<Kind extends IngredientSource['kind']> = Extract<IngredientSource, { kind: Kind }>;

/** Limits the SDK's validation of a file: this time, and the time to hash the file at the slowest rate. */
const VALIDATION_TIMEOUT_MS = 60_000;
const MIN_HASHING_BYTES_PER_S = 5 * 1024 * 1024;
/** Limits the status codes that a warning names. */
const MAX_NAMED_CODES = 5;

/**
 * Reads an ingredient. One that cannot be read in full is attached as far as possible, with a warning. Throws only when
 * the signal is aborted or the file has changed.
 */
export function readIngredient(
  source: IngredientSource,
  role: IngredientRole,
  context: ReadingContext,
): Promise<PreparedIngredient> | PreparedIngredient {
  switch (source.kind) {
    case 'reference':
      // Readers show the title of an ingredient, which is free text.
      return bare({ title: source.reference, ...role }, false);
    case 'plain':
      return plain(source, role);
    case 'file':
      return readUnchangedFile(source, role, context);
    case 'manifest-store':
      return readStore(source, role, context);
  }
}

/** Describes a file without a manifest, or one whose manifest is left out with a warning. */
function plain(
  { title, mediaType, instanceId = newInstanceId() }: Omit<SourceOf<'plain'>, 'kind'>,
  role: IngredientRole,
  warnings: readonly Warning[] = [],
): PreparedIngredient {
  const json = { title, format: mediaType, instance_id: instanceId, ...role };
  return { ...bare(json, warnings.length === 0), warnings };
}

function bare(json: PreparedIngredient['json'], isValidated: boolean): PreparedIngredient {
  return { json, store: null, isValidated, failures: [], warnings: [] };
}

/** Reads a file, and throws where it has changed since it was opened: the manifest must state the truth about it. */
async function readUnchangedFile(
  source: SourceOf<'file'>,
  role: IngredientRole,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const prepared = await readSignedFile(source, role, context);
  await source.checkUnchanged?.(context.signal);
  return prepared;
}

async function readSignedFile(
  source: SourceOf<'file'>,
  role: IngredientRole,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, manifest } = source;
  if (manifest !== undefined && manifest.sizeBytes > MAX_STORE_BYTES) {
    return plain(source, role, [tooLarge(title, manifest.sizeBytes)]);
  }
  const timeoutMs =
    VALIDATION_TIMEOUT_MS +
    ((statSync(source.path, { throwIfNoEntry: false })?.size ?? 0) / MIN_HASHING_BYTES_PER_S) * 1000;
  const late = AbortSignal.timeout(Math.ceil(timeoutMs));
  try {
    const mediaType = (await stillMediaTypeOf(source.path)) ?? source.mediaType;
    const signal = AbortSignal.any([context.signal, late]);
    const stated = await manifest?.read(signal);
    return await readMedia({ ...source, mediaType }, stated, role, { ...context, signal });
  } catch (error) {
    context.signal.throwIfAborted();
    const problem = late.aborted ? `it took longer than ${Math.round(timeoutMs / 1000)} s` : sdkProblem(error);
    return plain(source, role, [warning('INGREDIENT_UNREADABLE', { title, problem })]);
  }
}

/**
 * Validates the media once, after its costs are known. A signature of zeros shows whether the SDK can sign
 * the ingredient (it reads an unreadable manifest, and fails only when it signs), and contains the manifest
 * store to attach.
 */
async function readMedia(
  source: SourceOf<'file'>,
  stated: Uint8Array | undefined,
  role: IngredientRole,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, mediaType } = source;
  const store = stated ?? (await storeUnvalidated(source, context));
  if (store === null) return plain(source, role);
  if (store.length > MAX_STORE_BYTES) return plain(source, role, [tooLarge(title, store.length)]);
  const { exceeded, activeDigest } = context.allowance.admit(store);
  if (exceeded !== null) return plain(source, role, [warning('INGREDIENT_TOO_COMPLEX', { title, ...exceeded })]);
  const json = { title, format: mediaType, ...role };
  const read = await dryRunIngredient(source, json, { anchors: context.trust.anchorsFor(store) }, context);
  if (read.ingredient.active_manifest === undefined) return plain(source, role);
  const bytes = await ingredientStoreOf(read.store, context.signal);
  assert(bytes !== null, 'an ingredient with an active manifest has a manifest store');
  const judged = await judgedIngredient(source, read.ingredient, store, context.signal);
  return withStore({ ...judged, ...json }, role, { bytes, activeDigest });
}

/** Adds to an ingredient that the SDK does not refuse the findings by which `verify` refuses its file. */
async function judgedIngredient(
  { judge }: SourceOf<'file'>,
  ingredient: IngredientJson,
  store: Uint8Array,
  signal: AbortSignal,
): Promise<IngredientJson> {
  const { active_manifest: active, validation_results: results } = ingredient;
  if (judge === undefined || failuresIn(results?.activeManifest, VALID_ASSET).length > 0) return ingredient;
  const report = {
    manifests: {},
    ...(active !== undefined && { active_manifest: active }),
    ...(results !== undefined && { validation_results: results }),
  };
  const failures = await judge(report, store, signal);
  return failures.length === 0 ? ingredient : { ...ingredient, validation_results: withFailures(results, failures) };
}

/** Returns the manifest store of a file whose format has no handler here. The SDK finds it without validating it. */
async function storeUnvalidated(source: SourceOf<'file'>, context: ReadingContext): Promise<Uint8Array | null> {
  const json = { title: source.title, format: source.mediaType };
  const { ingredient, store } = await dryRunIngredient(source, json, 'none', context);
  return ingredient.active_manifest === undefined ? null : await ingredientStoreOf(store, context.signal);
}

function dryRunIngredient(
  source: SourceOf<'file'>,
  json: Readonly<Record<string, unknown>>,
  validation: IngredientValidation,
  { signer, signal }: ReadingContext,
): ReturnType<typeof signIngredient> {
  return signIngredient(smallestDefinition(), json, source, validation, zeroSignature(signer), signal);
}

async function readStore(
  source: SourceOf<'manifest-store'>,
  role: IngredientRole,
  context: ReadingContext,
): Promise<PreparedIngredient> {
  const { title, mediaType, manifestStore: bytes, validationResults } = source;
  try {
    if (bytes.length > MAX_STORE_BYTES) return plain(source, role, [tooLarge(title, bytes.length)]);
    const { exceeded, activeDigest } = context.allowance.admit(bytes);
    if (exceeded !== null) return plain(source, role, [warning('INGREDIENT_TOO_COMPLEX', { title, ...exceeded })]);
    const activeManifest = await activeManifestOf(bytes, context.signal);
    if (activeManifest === null) return plain(source, role);
    const json = {
      title,
      format: mediaType,
      active_manifest: activeManifest,
      ...(validationResults !== null && { validation_results: validationResults }),
    };
    const prepared = withStore(json, role, { bytes, activeDigest });
    if (validationResults !== null) return prepared;
    return { ...prepared, isValidated: false, warnings: [warning('INGREDIENT_NOT_VALIDATED', { title })] };
  } catch (error) {
    context.signal.throwIfAborted();
    return plain(source, role, [warning('INGREDIENT_UNREADABLE', { title, problem: sdkProblem(error) })]);
  }
}

function tooLarge(title: string, sizeBytes: number): Warning {
  return warning('INGREDIENT_TOO_LARGE', { title, sizeBytes, limitBytes: MAX_STORE_BYTES });
}

function withStore(
  json: IngredientJson & { readonly title: string },
  role: IngredientRole,
  store: { readonly bytes: Uint8Array; readonly activeDigest: string },
): PreparedIngredient {
  const identifier = `${role.label}.c2pa`;
  const failures = failuresIn(json.validation_results?.activeManifest, VALID_ASSET);
  return {
    json: { ...json, ...role, manifest_data: { format: MANIFEST_STORE_TYPE, identifier } },
    store: { identifier, ...store },
    isValidated: true,
    failures,
    warnings: failures.length === 0 ? [] : [invalid(json.title, failures)],
  };
}

function invalid(title: string, codes: readonly string[]): Warning {
  const details = { title, codes: codes.slice(0, MAX_NAMED_CODES), codeCount: codes.length };
  return warning('INGREDIENT_INVALID', details);
}
