import { basename, dirname, join, resolve } from 'node:path';
import { nearestRealPath } from '#bytes/real-path.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { C2paParams } from '#contract/signing.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { requestedName } from '#operations/admission-inputs.ts';
import { inTurns } from '#operations/in-turns.ts';
import { stemOf } from '#outputs/placement.ts';
import { s3PlacesOf } from '#s3/s3-places.ts';
import { PlaceSet } from './place-set.ts';
import type { JobPlaces } from './store/unfinished-jobs.ts';

/** So many paths are resolved at once. */
const RESOLVED_AT_ONCE = 32;

/**
 * Who writes where, for one job: nothing is written twice within a request, and nothing that the request reads is
 * written at all. Paths are compared with their links resolved.
 */
export class DestinationLedger {
  readonly #sources: PlaceSet<string>;
  readonly #destinations = new PlaceSet<number>();
  readonly #placesOfInput = new Map<number, string[]>();
  /** The outputs of a job lie in one folder, whose links are resolved once. */
  readonly #folders = new Map<string, Promise<string>>();

  /** Whether the job has one input, so that no other can be in its way. */
  readonly isAlone: boolean;
  readonly #areApart: boolean;
  #openFolder: string | undefined;

  private constructor(sources: PlaceSet<string>, inputs: readonly ApiInputRef[]) {
    this.#sources = sources;
    this.isAlone = inputs.length === 1;
    this.#areApart = areApart(inputs);
  }

  /** The ledger of a job, with what its inputs have delivered so far. */
  static async of({ inputs, params, outputs }: JobPlaces): Promise<DestinationLedger> {
    const sources = new PlaceSet<string>();
    const given = [...sourcesOf(inputs, params)];
    const local = given.flatMap((source) => ('path' in source ? [source.path] : []));
    for await (const [index, real] of inTurns(await resolveAll(local))) sources.add(real, local[index] ?? real);
    for await (const [, source] of inTurns(given)) {
      if ('url' in source) for (const place of s3PlacesOf(source.url)) sources.add(place, source.url);
    }
    const ledger = new DestinationLedger(sources, inputs);
    const delivered = await resolveAll(outputs.map((output) => output.outputPath));
    for (const [index, { inputIndex }] of outputs.entries()) ledger.#note(delivered[index] ?? '', inputIndex);
    return ledger;
  }

  /** Reserves a destination for an input, or says why it cannot have it. An input may claim the same one again. */
  async claim(destination: string, inputIndex: number): Promise<AppErrorData | undefined> {
    const real = await this.#placeOf(destination);
    for (const source of this.#sources.touching(real)) {
      return new AppError('OUTPUT_TOUCHES_SOURCE', { path: destination, source }, { inputIndex }).toData();
    }
    for (const owner of this.#destinations.touching(real)) {
      if (owner !== inputIndex) return new AppError('OUTPUT_TAKEN', { path: destination }, { inputIndex }).toData();
    }
    this.#note(real, inputIndex);
    if (this.#areApart && this.#openFolder === undefined)
      this.#openFolder = this.#folderWithoutSources(destination, real);
    return undefined;
  }

  #folderWithoutSources(destination: string, real: string): string | undefined {
    if (isAddress(destination)) return undefined;
    const [source] = this.#sources.touching(dirname(real));
    return source === undefined ? dirname(destination) : undefined;
  }

  /**
   * The folder that all inputs of the job may write a file into without claiming it: an output went there, the job
   * reads nothing there, and the names of its inputs keep its outputs apart. Undefined where none is known, or ever will.
   */
  get openFolder(): string | undefined {
    return this.#openFolder;
  }

  /** Frees what an input had claimed that delivered nothing. */
  release(inputIndex: number): void {
    for (const place of this.#placesOfInput.get(inputIndex) ?? []) this.#destinations.delete(place);
    this.#placesOfInput.delete(inputIndex);
  }

  /** A link with the destination's own name would be replaced and not followed, so it is not resolved. */
  async #placeOf(destination: string): Promise<string> {
    if (isAddress(destination)) return destination;
    const path = resolve(destination);
    const folder = this.#folders.get(dirname(path)) ?? resolvedPlace(dirname(path));
    this.#folders.set(dirname(path), folder);
    return join(await folder, basename(path));
  }

  #note(real: string, inputIndex: number): void {
    this.#destinations.add(real, inputIndex);
    const places = this.#placesOfInput.get(inputIndex) ?? [];
    this.#placesOfInput.set(inputIndex, [...places, real]);
  }
}

/** Everything that a request reads: its inputs, and the files of its parents. */
function* sourcesOf(inputs: readonly ApiInputRef[], params: unknown): Iterable<ApiInputRef> {
  yield* inputs;
  const { parent, parent_overrides: overrides = [] } = (params ?? {}) as Partial<C2paParams>;
  for (const given of [parent, ...overrides.map((override) => override.parent)]) {
    if (given?.type === 'file') yield given.source;
  }
}

async function resolveAll(paths: readonly string[]): Promise<string[]> {
  const all: string[] = [];
  for (let start = 0; start < paths.length; start += RESOLVED_AT_ONCE) {
    all.push(...(await Promise.all(paths.slice(start, start + RESOLVED_AT_ONCE).map(resolvedPlace))));
  }
  return all;
}

/** Addresses of objects are compared as they are; so is a path that cannot be resolved, whose input fails elsewhere. */
export async function resolvedPlace(path: string): Promise<string> {
  if (isAddress(path)) return path;
  return nearestRealPath(path).catch(() => path);
}

/** Whether the inputs are files whose outputs have different names, whatever is found in them. */
function areApart(inputs: readonly ApiInputRef[]): boolean {
  if (inputs.some(({ type }) => type !== 'local_file_path')) return false;
  return new Set(inputs.map((input, index) => stemOf(requestedName(input, index)))).size === inputs.length;
}

function isAddress(place: string): boolean {
  return !place.startsWith('/') && /^[a-z0-9]+:\/\//i.test(place);
}
