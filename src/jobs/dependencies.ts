import { isSameOrInside } from '#bytes/path-overlap.ts';
import type { Config } from '#config/config.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { AppError } from '#errors/app-error.ts';
import { DEPENDENCY_KINDS, type DependencyKind } from '#errors/entry.ts';
import { isS3Url, parseS3Url } from '#s3/s3-address.ts';
import type { Submission } from './job.ts';

/** A part of the deployment that inputs need: one bucket, by side; one folder; an identity; its authorities. */
export interface Dependency {
  readonly kind: DependencyKind;
  /**
   * The bucket, the folder of inputs, or the identity, of authorities only where it has its own; undefined where there is one
   * dependency of the kind. A signer without a name is that of the default, in records of older releases.
   */
  readonly name?: string;
}

/** The means to find out whether dependencies work. */
export interface DependencyProbes {
  /**
   * Uses a dependency for a moment. Resolves with null where it works, else with the problem, in words. Never rejects, and ends
   * within a bound also where the dependency hangs.
   */
  problemOf(dependency: Dependency): Promise<string | null>;
  /** Returns the least pause before the next probe, in milliseconds. */
  minPauseMs(dependency: Dependency): number;
  /** Returns the host of the endpoint that a dependency is reached at, where one is configured. */
  hostOf?(dependency: Dependency): string | undefined;
}

/** Probes of commands, which do not wait for dependencies. */
export const NOTHING_PROBED: DependencyProbes = { problemOf: async () => null, minPauseMs: () => 0 };

/** The kind of the keys of identities; by itself, that of the default in records of older releases. */
export const SIGNER: DependencyKind = 'signer';

/** Returns the text that names a dependency in the store: its kind and, behind a colon, its encoded name, without spaces. */
export function idOf({ kind, name }: Dependency): string {
  return name === undefined ? kind : `${kind}:${encodeURIComponent(name)}`;
}

/** Returns such a text as logs and admins see it. */
export function shownIdOf(id: string): string {
  return decodeURIComponent(id);
}

/** Returns the dependency of such a text; null where it is of another release. */
export function dependencyOf(id: string): Dependency | null {
  const [, kind = '', name] = /^([^:]*)(?::(.*))?$/s.exec(id) ?? [];
  const known = DEPENDENCY_KINDS.find((each) => each === kind);
  if (known === undefined) return null;
  return name === undefined ? { kind: known } : { kind: known, name: decodeURIComponent(name) };
}

export function isBucket(kind: DependencyKind | undefined): boolean {
  return kind === 'input_bucket' || kind === 'output_bucket';
}

/** Tells whether such a text names what may hang and say nothing: a folder or bucket. */
export function mayHang(id: string): boolean {
  const kind = dependencyOf(id)?.kind;
  return isBucket(kind) || kind?.endsWith('_folder') === true;
}

/** Tells whether such a text names a signer. */
export function isSigner(id: string): boolean {
  return id === SIGNER || id.startsWith(`${SIGNER}:`);
}

/** Operations that write whole media to the scratch folder. */
const PACKAGING: ReadonlySet<string> = new Set(['package', 'c2pa-package']);

/** Returns the dependencies that each input of a submission needs, as far as the request tells, in the order of the inputs. */
export function needsOf(
  { operation, request }: Submission,
  identity: string | null,
  config: Config,
): readonly (readonly string[])[] {
  const isSigned = identity !== null;
  const isWritten = isSigned || operation === 'package' || request.output != null;
  // Read back, an output in a bucket lies there. So does the body of a server without ranges.
  const usesScratch = PACKAGING.has(operation) || (isWritten && request.output?.type === 's3');
  const shared: Dependency[] = [...(isWritten ? [outputOf(request.output)] : [])];
  const signing = isSigned ? signingNeeds(identity, config) : [];
  return request.inputs.map((input) => {
    const scratch: Dependency[] = usesScratch || isHttp(input) ? [{ kind: 'scratch_folder' }] : [];
    return [...[...sourceOf(input, config), ...shared].map(idOf), ...signing, ...scratch.map(idOf)];
  });
}

/** Returns what a signature needs. An identity with authorities of its own does not wait for those of others. */
export function signingNeeds(identity: string, { signing }: Pick<Config, 'signing'>): readonly string[] {
  const own = signing.identities[identity]?.tsa_url;
  const authorities: Dependency = { kind: 'time_stamp_authority', ...(own !== undefined && { name: identity }) };
  const isStamped = signing.tsa_required && (own ?? signing.tsa_url).length > 0;
  return [idOf({ kind: SIGNER, name: identity }), ...(isStamped ? [idOf(authorities)] : [])];
}

function isHttp(input: ApiInputRef): boolean {
  return 'url' in input && !isS3Url(input.url);
}

function outputOf(output: Submission['request']['output']): Dependency {
  return output?.type === 's3' ? { kind: 'output_bucket', name: output.bucket } : { kind: 'output_folder' };
}

function sourceOf(input: ApiInputRef, { input_resolvers: { local } }: Config): readonly Dependency[] {
  if ('url' in input) return isS3Url(input.url) ? [{ kind: 'input_bucket', name: parseS3Url(input.url).bucket }] : [];
  const root = local.roots?.find((each) => isSameOrInside(input.path, each));
  return root === undefined ? [] : [{ kind: 'input_folder', name: root }];
}

/**
 * Returns the dependencies of an input that may be the cause of an error: those of the kinds that its reason names, and of the
 * bucket that it is about. Some are not known before, such as that of a parent in a bucket.
 */
export function causesOf({ dependencies, details }: AppError, needs: readonly string[]): readonly string[] {
  const bucket = bucketIn(details);
  return dependencies.flatMap((kind): readonly string[] => {
    const ofKind = needs.filter((id) => dependencyOf(id)?.kind === kind);
    if (kind === 'input_folder') return ofKind;
    if (!isBucket(kind)) return ofKind.length > 0 ? ofKind : [idOf({ kind })];
    return bucket === null ? ofKind : ofKind.filter((id) => dependencyOf(id)?.name === bucket);
  });
}

function bucketIn(details: object): string | null {
  const { bucket, address } = details as { readonly bucket?: unknown; readonly address?: unknown };
  if (typeof bucket === 'string') return bucket;
  return typeof address === 'string' && isS3Url(address) ? parseS3Url(address).bucket : null;
}
