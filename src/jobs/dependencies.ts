import { isSameOrInside } from '#bytes/path-overlap.ts';
import type { Config } from '#config/config.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { AppError } from '#errors/app-error.ts';
import { DEPENDENCY_KINDS, type DependencyKind } from '#errors/entry.ts';
import { operations } from '#operations/registry.ts';
import { isS3Url, parseS3Url } from '#s3/s3-address.ts';
import type { Submission } from './job.ts';

/** A part of the deployment that inputs need: one bucket, by side; one folder; the authorities; the signer. */
export interface Dependency {
  readonly kind: DependencyKind;
  /** The bucket, or the folder of inputs; undefined where there is one dependency of the kind. */
  readonly name?: string;
}

/** The means to find out whether dependencies work. */
export interface DependencyProbes {
  /**
   * Uses a dependency for a moment. Resolves with null where it works, else with the problem, in words. Never rejects, and ends
   * within a bound also where the dependency hangs.
   */
  problemOf(dependency: Dependency): Promise<string | null>;
  /** Returns the least pause between two probes, in milliseconds. */
  minPauseMs(dependency: Dependency): number;
}

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

/** Operations that write whole media to the scratch folder. */
const PACKAGING: ReadonlySet<string> = new Set(['package', 'c2pa-package']);

/** Returns the dependencies that each input of a submission needs, as far as the request tells, in the order of the inputs. */
export function needsOf({ operation, request }: Submission, config: Config): readonly (readonly string[])[] {
  const { signing } = config;
  const isSigned = operations.some(({ name, signs }) => signs && name === operation);
  const isWritten = isSigned || operation === 'package' || request.output != null;
  // Read back, an output in a bucket lies there. So does the body of a server without ranges.
  const usesScratch = PACKAGING.has(operation) || (isWritten && request.output?.type === 's3');
  const shared: Dependency[] = [
    ...(isWritten ? [outputOf(request.output)] : []),
    ...(isSigned ? [{ kind: 'signer' } as const] : []),
    ...(isSigned && signing.tsa_url.length > 0 && signing.tsa_required
      ? [{ kind: 'time_stamp_authority' } as const]
      : []),
  ];
  return request.inputs.map((input) => {
    const scratch: Dependency[] = usesScratch || isHttp(input) ? [{ kind: 'scratch_folder' }] : [];
    return [...sourceOf(input, config), ...shared, ...scratch].map(idOf);
  });
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
    if (kind !== 'input_bucket' && kind !== 'output_bucket') return [idOf({ kind })];
    return bucket === null ? ofKind : ofKind.filter((id) => dependencyOf(id)?.name === bucket);
  });
}

function bucketIn(details: object): string | null {
  const { bucket, address } = details as { readonly bucket?: unknown; readonly address?: unknown };
  if (typeof bucket === 'string') return bucket;
  return typeof address === 'string' && isS3Url(address) ? parseS3Url(address).bucket : null;
}
