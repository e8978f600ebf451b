import { basename, dirname, join } from 'node:path';
import { nearestRealPath } from '#bytes/real-path.ts';
import type { Config } from '#config/config.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { checkOutputSegments, type Naming, outputLeaf, type S3OutputSpec, s3Destination } from '#outputs/placement.ts';
import { s3PlacesOf } from '#s3/s3-places.ts';
import type { AdmissionContext, OperationRequest } from './admission-context.ts';
import { extensionOf, requestedName } from './admission-inputs.ts';
import { inTurns } from './in-turns.ts';
import { isSignableExtension } from './media-extensions.ts';

/** So many paths are resolved at once: enough to keep the disk busy, few enough to leave the service's threads free. */
const RESOLVED_AT_ONCE = 16;

/** An output whose place can be told from the request. */
interface Destination {
  readonly inputIndex: number;
  readonly path: string;
}

/** The leaf that an input of a name is written to; null where that depends on its bytes. */
export type LeafRule = (name: string, naming: Naming) => string | null;

/** The leaf of a file whose name already has a media extension; another extension would be replaced later. */
export const fileLeaf: LeafRule = (name, naming) => {
  const extension = extensionOf(name);
  return isSignableExtension(extension) ? outputLeaf(name, [extension], naming).leaf : null;
};

/** Folders keep their name. */
export const folderLeaf: LeafRule = (name) => name;

/**
 * Admits where an operation writes: the sink, its folders, no two inputs to one place, and none to a place
 * that is, holds or lies inside one that the request reads. What depends on an input's bytes or on what a server
 * calls it is settled when the input claims its destination.
 */
export async function admitOutputs(
  request: OperationRequest,
  leafOf: LeafRule,
  otherSources: readonly ApiInputRef[],
  { config, signal }: AdmissionContext,
): Promise<void> {
  const { inputs, output } = request;
  const sources = [...inputs, ...otherSources];
  const conflict =
    output?.type === 's3'
      ? await conflictInS3(await distinctLeaves(inputs, leafOf, s3PlaceOf(output, config)), sources)
      : await conflictOnHost(await distinctLeaves(inputs, leafOf, localPlaceOf(output, config)), sources, signal);
  if (conflict === null) return;
  const { inputIndex, path, source } = conflict;
  throw new AppError('OUTPUT_TOUCHES_SOURCE', { path, source }, { field: `inputs[${inputIndex}]`, inputIndex });
}

/** Where the outputs of a request go. */
interface OutputPlace {
  readonly naming: Naming;
  destinationOf(leaf: string): string;
}

function localPlaceOf(output: ApiOutputSpec | null | undefined, { output_sinks: { local } }: Config): OutputPlace {
  const folder = join(local.base_dir, ...checkOutputSegments(output));
  return { naming: local.naming, destinationOf: (leaf) => join(folder, leaf) };
}

function s3PlaceOf(output: S3OutputSpec, { output_sinks: { s3 } }: Config): OutputPlace {
  if (s3 === undefined) throw new AppError('S3_OUTPUT_UNAVAILABLE', {}, { field: 'output.type' });
  const { bucket } = output;
  if (!s3.buckets.includes(bucket))
    throw new AppError('S3_OUTPUT_BUCKET_REFUSED', { bucket }, { field: 'output.bucket' });
  checkOutputSegments(output);
  return { naming: s3.naming, destinationOf: (leaf) => s3Destination(output, leaf, s3.base_prefix) };
}

/** Every destination that can be told by now, each once. */
async function distinctLeaves(
  inputs: readonly ApiInputRef[],
  leafOf: LeafRule,
  place: OutputPlace,
): Promise<Destination[]> {
  const taken = new Set<string>();
  const destinations: Destination[] = [];
  for await (const [inputIndex, input] of inTurns(inputs)) {
    const leaf = leafOf(requestedName(input, inputIndex), place.naming);
    if (leaf === null) continue;
    const path = place.destinationOf(leaf);
    if (taken.has(leaf)) throw new AppError('OUTPUT_TAKEN', { path }, { field: `inputs[${inputIndex}]`, inputIndex });
    taken.add(leaf);
    destinations.push({ inputIndex, path });
  }
  return destinations;
}

type Conflict = Destination & { readonly source: string };

/** All destinations lie in one folder, whose links are resolved once. */
async function conflictOnHost(
  destinations: readonly Destination[],
  sources: readonly ApiInputRef[],
  signal: AbortSignal,
): Promise<Conflict | null> {
  const [first] = destinations;
  if (first === undefined) return null;
  const folder = await nearestRealPath(dirname(first.path));
  const real: Destination[] = [];
  for await (const [, { inputIndex, path }] of inTurns(destinations)) {
    real.push({ inputIndex, path: join(folder, basename(path)) });
  }
  return firstConflict(real, await realPathsOf(sources, signal));
}

async function conflictInS3(
  destinations: readonly Destination[],
  sources: readonly ApiInputRef[],
): Promise<Conflict | null> {
  const places = new Map<string, string>();
  for await (const [, source] of inTurns(sources)) {
    if ('url' in source) for (const place of s3PlacesOf(source.url)) places.set(place, source.url);
  }
  return firstConflict(destinations, places);
}

/** The real path of every local source, as far as it exists, with the path that the request gives. */
async function realPathsOf(sources: readonly ApiInputRef[], signal: AbortSignal): Promise<Map<string, string>> {
  const paths = [...new Set(sources.flatMap((source) => ('path' in source ? [source.path] : [])))];
  const resolved = new Map<string, string>();
  const pending = paths.values();
  const resolveNext = async (): Promise<void> => {
    for (const path of pending) {
      signal.throwIfAborted();
      resolved.set(await nearestRealPath(path), path);
    }
  };
  await Promise.all(Array.from({ length: RESOLVED_AT_ONCE }, resolveNext));
  return resolved;
}

/**
 * The first destination that is, holds or lies inside a source. Every folder is looked at once, however many paths lie
 * in it: 10,000 inputs are legitimate.
 */
export async function firstConflict(
  destinations: readonly Destination[],
  sources: ReadonlyMap<string, string>,
): Promise<Conflict | null> {
  const sourceInside = new Map<string, string>();
  for await (const [, [real, source]] of inTurns(sources)) {
    for (let folder = dirname(real); !sourceInside.has(folder); folder = dirname(folder)) {
      sourceInside.set(folder, source);
    }
  }
  const clear = new Set<string>();
  for await (const [, destination] of inTurns(destinations)) {
    const { path } = destination;
    const source = sources.get(path) ?? sourceInside.get(path) ?? sourceAround(path, sources, clear);
    if (source !== undefined) return { ...destination, source };
  }
  return null;
}

/** The source that a path lies inside, if any. Folders that lie in none are added to `clear`. */
function sourceAround(path: string, sources: ReadonlyMap<string, string>, clear: Set<string>): string | undefined {
  for (let folder = dirname(path); !clear.has(folder); folder = dirname(folder)) {
    const source = sources.get(folder);
    if (source !== undefined) return source;
    clear.add(folder);
  }
  return undefined;
}
