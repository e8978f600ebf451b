import { basename, dirname, extname, join, resolve } from 'node:path';
import { realPathIfItAnswers } from '#bytes/file-system-gate.ts';
import { PathSet } from '#bytes/path-overlap.ts';
import { mapConcurrent, yieldingEntries } from '#concurrency/map-concurrent.ts';
import type { Config } from '#config/config.ts';
import type { PackageParams } from '#contract/package-request.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { ApiParent, ApiParentFileSource, C2paParams } from '#contract/signing.ts';
import { AppError, type ErrorLocation, MAX_PROBLEMS } from '#errors/app-error.ts';
import { isSignableExtension, SIGNABLE_CONTAINERS } from '#formats/formats.ts';
import { UNSIGNABLE_EXTENSIONS } from '#formats/unsupported-containers.ts';
import { requestedName } from '#inputs/input-name.ts';
import {
  checkOutputSegments,
  type Naming,
  outputLeaf,
  type S3OutputSpec,
  s3Destination,
} from '#outputs/output-path.ts';
import { admittedS3Address, admittedS3Object, comparableS3Urls, isS3Url } from '#s3/s3-address.ts';
import { statedAction } from '../ingredients.ts';
import type { OperationRequest, RequestContext } from '../operation.ts';
import { sidecarLeaves } from '../output-names.ts';

/** Returns why an operation refuses an extension (lower case, without dot), as the end of a sentence; null where it does not. */
type ExtensionRule = (extension: string) => string | null;

/**
 * Checks the inputs of an operation on files: their number, their types, the extensions of their names, and that this
 * deployment can open them. Throws `TOO_MANY_INPUTS`, `INPUT_IS_FOLDER`, `INPUT_EXTENSION_REFUSED` or an S3 reason.
 */
async function validateFileInputs(
  inputs: readonly ApiInputRef[],
  config: Config,
  refusalOf: ExtensionRule,
): Promise<void> {
  await checkInputs(inputs, config, (input, location) => {
    const { inputIndex, field } = location;
    const { type } = input;
    if (isFolder(input)) {
      throw new AppError('INPUT_IS_FOLDER', { type, inputIndex }, { ...location, field: `${field}.type` });
    }
    const name = requestedName(input, inputIndex);
    const problem = refusalOf(extensionOf(name));
    if (problem !== null) throw new AppError('INPUT_EXTENSION_REFUSED', { name, problem }, location);
    requireResolver(input, config, location);
  });
}

/**
 * Checks the inputs of an operation on folders: their number, their types, and that this deployment can open them.
 * Throws `TOO_MANY_INPUTS`, `INPUT_IS_FILE`, `FOLDER_IS_ROOT` or an S3 reason.
 */
export async function validateFolderInputs(inputs: readonly ApiInputRef[], config: Config): Promise<void> {
  await checkInputs(inputs, config, (input, location) => {
    const { inputIndex, field } = location;
    const { type } = input;
    if (!isFolder(input)) {
      throw new AppError('INPUT_IS_FILE', { type, inputIndex }, { ...location, field: `${field}.type` });
    }
    refuseRoot(input, location);
    requireResolver(input, config, location);
  });
}

/**
 * Refuses two descriptions of one stream, or of one file, with `REQUEST_INVALID`: a stream takes its own, else that of its
 * file, and none counts twice.
 */
export function validateTracks({ params }: OperationRequest): void {
  const described = new Map<string, number>();
  for (const [index, { file, stream }] of ((params as PackageParams | undefined)?.tracks ?? []).entries()) {
    const key = JSON.stringify([file, stream]);
    const first = described.get(key);
    if (first !== undefined) {
      const field = `params.tracks[${index}]`;
      const problem = `describes the same stream as params.tracks[${first}]. Keep one`;
      throw new AppError('REQUEST_INVALID', { field, problem }, { field });
    }
    described.set(key, index);
  }
}

/** Checks the inputs of an operation on files and folders, as the other checks do, but for the extensions of names. */
export async function validateAnyInputs(inputs: readonly ApiInputRef[], config: Config): Promise<void> {
  await checkInputs(inputs, config, (input, location) => {
    if (isFolder(input)) refuseRoot(input, location);
    requireResolver(input, config, location);
  });
}

/** The position of an input in a request. */
type InputLocation = ReferenceLocation & { readonly inputIndex: number };

/** Checks the number of inputs, then each. Throws the first error of a check, which has those of other inputs. */
async function checkInputs(
  inputs: readonly ApiInputRef[],
  config: Config,
  check: (input: ApiInputRef, location: InputLocation) => void,
): Promise<void> {
  const { length: count } = inputs;
  const limit = config.worker.max_inputs_per_job;
  if (count > limit) throw new AppError('TOO_MANY_INPUTS', { count, limit }, { field: 'inputs' });
  const problems: AppError[] = [];
  for await (const [inputIndex, input] of yieldingEntries(inputs)) {
    if (problems.length >= MAX_PROBLEMS) break;
    try {
      check(input, { field: `inputs[${inputIndex}]`, inputIndex });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      problems.push(error);
    }
  }
  AppError.throwFirst(problems);
}

/** Returns true for a reference to a folder. */
export function isFolder({ type }: ApiInputRef): boolean {
  return type === 'local_folder_path' || type === 'remote_folder_url';
}

function refuseRoot(input: ApiInputRef, location: ReferenceLocation): void {
  if ('path' in input && resolve(input.path) === '/') {
    throw new AppError('FOLDER_IS_ROOT', {}, { ...location, field: `${location.field}.path` });
  }
}

/** Returns the extension of a name, lower case and without dot; empty where there is none. */
function extensionOf(name: string): string {
  return extname(name).slice(1).toLowerCase();
}

/** Position of a reference to a file or folder in a request. */
type ReferenceLocation = ErrorLocation & { readonly field: string };

/** Refuses a reference that no input resolver of this deployment opens. Throws an S3 reason. */
export function requireResolver(input: ApiInputRef, { input_resolvers }: Config, location: ReferenceLocation): void {
  if (!('url' in input) || !isS3Url(input.url)) return;
  const check = input.type === 'remote_file_url' ? admittedS3Object : admittedS3Address;
  check(input.url, input_resolvers.s3, { ...location, field: `${location.field}.url` });
}

/** Paths resolved concurrently. */
const MAX_CONCURRENT_RESOLUTIONS = 16;

/** Destination of an input that is known from the request alone. */
interface Destination {
  readonly inputIndex: number;
  readonly path: string;
}

/** Returns the names of the files or the folder that an input is written to; none where they depend on its bytes. */
type LeafRule = (name: string, naming: Naming) => readonly string[];

/** Names an output after a file whose extension is signable. Any other extension is replaced later, by what the bytes are. */
const fileLeaf: LeafRule = (name, naming) => {
  const extension = extensionOf(name);
  return isSignableExtension(extension) ? [outputLeaf(name, [extension], naming).leaf] : [];
};

/** Names an output after its folder. */
export const folderLeaf: LeafRule = (name) => [name];

/**
 * Checks the outputs of a request: the sink and its folders exist, no two inputs have the same destination, and no
 * destination overlaps a source. Destinations that depend on an input's bytes, or on the name that a server gives it, are
 * checked when the input reserves them. Throws `OUTPUT_TAKEN`, `OUTPUT_TOUCHES_SOURCE`, or a reason of the sink.
 */
export async function validateOutputs(
  request: OperationRequest,
  leafOf: LeafRule,
  otherSources: readonly ApiInputRef[],
  context: RequestContext,
): Promise<void> {
  const conflict = await conflictOf(request, leafOf, [...request.inputs, ...otherSources], context);
  if (conflict === null) return;
  const { inputIndex, path, source } = conflict;
  throw new AppError('OUTPUT_TOUCHES_SOURCE', { path, source }, { field: `inputs[${inputIndex}]`, inputIndex });
}

async function conflictOf(
  { inputs, output }: OperationRequest,
  leafOf: LeafRule,
  sources: readonly ApiInputRef[],
  { config, signal }: RequestContext,
): Promise<Conflict | null> {
  switch (output?.type) {
    case undefined:
    case 'local':
      return await conflictOnHost(await destinationsOf(inputs, leafOf, localTarget(output, config)), sources, signal);
    case 's3':
      return await conflictInS3(await destinationsOf(inputs, leafOf, s3Target(output, config)), sources);
  }
}

/** Folder or S3 prefix that the outputs of a request go to. */
interface OutputTarget {
  readonly naming: Naming;
  destinationOf(leaf: string): string;
}

function localTarget(output: ApiOutputSpec | null | undefined, { output_sinks: { local } }: Config): OutputTarget {
  const folder = join(local.base_dir, ...checkOutputSegments(output));
  return { naming: local.naming, destinationOf: (leaf) => join(folder, leaf) };
}

function s3Target(output: S3OutputSpec, { output_sinks: { s3 } }: Config): OutputTarget {
  if (s3 === undefined) throw new AppError('S3_OUTPUT_UNAVAILABLE', {}, { field: 'output.type' });
  const { bucket } = output;
  if (!s3.buckets.includes(bucket))
    throw new AppError('S3_OUTPUT_BUCKET_REFUSED', { bucket }, { field: 'output.bucket' });
  checkOutputSegments(output);
  return { naming: s3.naming, destinationOf: (leaf) => s3Destination(output, leaf, s3.base_prefix) };
}

/** Returns the destinations that are known by now. Throws `OUTPUT_TAKEN` where two inputs have the same. */
async function destinationsOf(
  inputs: readonly ApiInputRef[],
  leafOf: LeafRule,
  target: OutputTarget,
): Promise<Destination[]> {
  const taken = new Set<string>();
  const problems: AppError[] = [];
  const destinations: Destination[] = [];
  for await (const [inputIndex, input] of yieldingEntries(inputs)) {
    for (const leaf of leafOf(requestedName(input, inputIndex), target.naming)) {
      const path = target.destinationOf(leaf);
      if (taken.has(leaf) && problems.length < MAX_PROBLEMS) {
        problems.push(new AppError('OUTPUT_TAKEN', { path }, { field: `inputs[${inputIndex}]`, inputIndex }));
      }
      taken.add(leaf);
      destinations.push({ inputIndex, path });
    }
  }
  AppError.throwFirst(problems);
  return destinations;
}

type Conflict = Destination & { readonly source: string };

/** Resolves the links of the folder once, because all destinations lie in it. */
async function conflictOnHost(
  destinations: readonly Destination[],
  sources: readonly ApiInputRef[],
  signal: AbortSignal,
): Promise<Conflict | null> {
  const [first] = destinations;
  if (first === undefined) return null;
  const folder = await realPathIfItAnswers(dirname(first.path));
  const real: Destination[] = [];
  for await (const [, { inputIndex, path }] of yieldingEntries(destinations)) {
    real.push({ inputIndex, path: join(folder, basename(path)) });
  }
  return firstConflict(real, await realPathsOf(sources, signal));
}

async function conflictInS3(
  destinations: readonly Destination[],
  sources: readonly ApiInputRef[],
): Promise<Conflict | null> {
  const addresses = new Map<string, string>();
  for await (const [, source] of yieldingEntries(sources)) {
    if ('url' in source) for (const address of comparableS3Urls(source.url)) addresses.set(address, source.url);
  }
  return firstConflict(destinations, addresses);
}

/** Maps the real path of every local source, as far as it exists, to the path in the request. */
async function realPathsOf(sources: readonly ApiInputRef[], signal: AbortSignal): Promise<Map<string, string>> {
  const paths = [...new Set(sources.flatMap((source) => ('path' in source ? [source.path] : [])))];
  const resolved = await mapConcurrent(paths, MAX_CONCURRENT_RESOLUTIONS, async (path): Promise<[string, string]> => {
    signal.throwIfAborted();
    return [await realPathIfItAnswers(path), path];
  });
  return new Map(resolved);
}

/** Returns the first destination that is, holds or lies inside a source; null for none. */
export async function firstConflict(
  destinations: readonly Destination[],
  sources: ReadonlyMap<string, string>,
): Promise<Conflict | null> {
  const paths = new PathSet<string>();
  for await (const [, [real, source]] of yieldingEntries(sources)) paths.add(real, source);
  for await (const [, destination] of yieldingEntries(destinations)) {
    for (const source of paths.overlapping(destination.path)) return { ...destination, source };
  }
  return null;
}

/**
 * Checks what all signing operations have in common: parents and overrides, outputs, and assertions, by a dry-run
 * signature. Throws `OVERRIDE_OUT_OF_RANGE`, `OVERRIDE_REPEATED`, `ORIGIN_HAS_PARENT`, or what the checks of outputs,
 * assertions and actions throw.
 */
export async function validateSigning(
  request: OperationRequest,
  leafOf: LeafRule,
  context: RequestContext,
): Promise<void> {
  const params = (request.params ?? {}) as C2paParams;
  validateParents(params, request.inputs.length, context.config);
  validateOrigin(params, request.inputs.length);
  await validateOutputs(request, leafOf, parentSources(params), context);
  const actions = (params.actions ?? context.config.signing.actions).map(statedAction);
  await context.checkAssertions(params.assertions ?? [], context.signal, actions);
}

/** Throws `ORIGIN_HAS_PARENT` for the first input that the request says was made anew, and gives a parent. */
function validateOrigin(params: C2paParams, inputCount: number): void {
  if (params.digital_source_type === undefined || params.digital_source_type === null) return;
  const overrides = new Map((params.parent_overrides ?? []).map((override) => [override.input_index, override.parent]));
  const isGiven = (index: number): boolean => (overrides.has(index) ? overrides.get(index) : params.parent) != null;
  const inputIndex = Array.from({ length: inputCount }, (_, index) => index).find(isGiven);
  if (inputIndex === undefined) return;
  throw new AppError('ORIGIN_HAS_PARENT', { inputIndex }, { field: 'params.digital_source_type', inputIndex });
}

function validateParents(params: C2paParams, inputCount: number, config: Config): void {
  validateParent(params.parent, config, { field: 'params.parent' });
  const overridden = new Set<number>();
  for (const [index, override] of (params.parent_overrides ?? []).entries()) {
    const field = `params.parent_overrides[${index}]`;
    const { input_index: inputIndex } = override;
    validateInputIndex(inputIndex, inputCount, overridden, `${field}.input_index`);
    validateParent(override.parent, config, { field: `${field}.parent`, inputIndex });
  }
}

/**
 * Checks the index of an input in a list of `params`, and adds it to those that the list has named. Throws
 * `OVERRIDE_OUT_OF_RANGE` or `OVERRIDE_REPEATED`.
 */
export function validateInputIndex(inputIndex: number, inputCount: number, named: Set<number>, field: string): void {
  if (inputIndex >= inputCount) throw new AppError('OVERRIDE_OUT_OF_RANGE', { inputIndex, inputCount }, { field });
  if (named.has(inputIndex)) throw new AppError('OVERRIDE_REPEATED', { inputIndex }, { field, inputIndex });
  named.add(inputIndex);
}

function validateParent(parent: ApiParent | null | undefined, config: Config, location: ReferenceLocation): void {
  if (parent?.type !== 'file') return;
  requireResolver(parent.source, config, { ...location, field: `${location.field}.source` });
}

/** Returns the files that the parents of a request are read from: outputs must not overwrite them either. */
function parentSources({ parent, parent_overrides: overrides = [] }: C2paParams): ApiParentFileSource[] {
  return [parent, ...overrides.map((override) => override.parent)].flatMap((candidate) =>
    candidate?.type === 'file' ? [candidate.source] : [],
  );
}

/**
 * Checks a request to sign files. `refusalOf` refuses extensions where the manifest is embedded; a sidecar goes with a file
 * of any kind. Throws `COPY_SOURCE_WITHOUT_SIDECAR`, or what the checks of inputs and of signing throw.
 */
export async function validateFileSigning(
  request: OperationRequest,
  refusalOf: ExtensionRule,
  context: RequestContext,
): Promise<void> {
  const params = (request.params ?? {}) as C2paParams;
  const isSidecar = params.manifest === 'sidecar';
  if (!isSidecar && params.copy_source !== undefined) {
    throw new AppError('COPY_SOURCE_WITHOUT_SIDECAR', {}, { field: 'params.copy_source' });
  }
  await validateFileInputs(request.inputs, context.config, isSidecar ? refusalOfSidecar : embeddable(refusalOf));
  await validateSigning(request, isSidecar ? leavesWithSidecar(params) : fileLeaf, context);
}

function refusalOfSidecar(extension: string): string | null {
  return extension === 'c2pa'
    ? 'a ".c2pa" file is itself a manifest, and a sidecar of it would have its name. Submit the file that it belongs to'
    : null;
}

/** Refuses containers that cannot carry a manifest as well. */
function embeddable(refusalOf: ExtensionRule): ExtensionRule {
  return (extension) =>
    UNSIGNABLE_EXTENSIONS.has(extension)
      ? `a ".${extension}" file cannot carry a manifest here. Set params.manifest to "sidecar", for a manifest in a file of its own, or convert it to one of ${SIGNABLE_CONTAINERS}`
      : refusalOf(extension);
}

function leavesWithSidecar(params: C2paParams): LeafRule {
  return (name, naming) => {
    const { copy, sidecar } = sidecarLeaves(name, naming, params.copy_source);
    return copy === null ? [sidecar] : [copy, sidecar];
  };
}
