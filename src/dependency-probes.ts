import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FolderProbes } from '#bytes/folder-probe.ts';
import type { Config } from '#config/config.ts';
import { defaultIdentityOf } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import type { DependencyKind } from '#errors/entry.ts';
import { type Dependency, type DependencyProbes, idOf } from '#jobs/dependencies.ts';
import { probeBuckets, probeInputBucket } from '#outputs/s3-tasks.ts';
import type { Launcher } from '#processes/launcher.ts';
import { connectionProblemOf } from '#provenance/bounded-post.ts';
import { probeSigning } from '#provenance/probe-signing.ts';
import type { Signers } from '#provenance/signers.ts';

/** A bucket that says nothing for longer does not answer. */
const BUCKET_BOUND_MS = 10_000;

/** Requests of a probe are repeated for some 6 seconds, so that a busy server is told from one that does not answer. */
const BUCKET_BOUNDS = { firstPauseMs: 100 };

/** Authorities take money for time-stamps. */
const TIME_STAMP_INTERVAL_MS = 5 * 60_000;

interface Parts {
  /** Returns the configuration in force: a reload may replace keys of it. */
  readonly config: () => Config;
  readonly launcher: Launcher;
  readonly signer?: Signers;
}

/** Returns how the service finds out whether its dependencies work, in child processes. To be called at the start. */
export function createDependencyProbes(parts: Parts): DependencyProbes {
  const { config, launcher } = parts;
  const { input_resolvers: inputs, output_sinks: outputs, jobs } = config();
  const folders = new FolderProbes(launcher);
  const mounts = new Set((inputs.local.roots ?? []).filter(isMountPoint));
  const servers: { readonly [Kind in DependencyKind]?: { readonly endpoint_url?: string } | undefined } = {
    input_bucket: inputs.s3,
    output_bucket: outputs.s3,
  };
  /** The times at which time-stamps were asked for, by the authorities. */
  const stampedAtMs = new Map<string, number>();

  const use = async (dependency: Dependency): Promise<string | null> => {
    const { kind, name = '' } = dependency;
    switch (kind) {
      case 'input_folder':
        return folders.problemOf({ folder: name, write: false, wasMounted: mounts.has(name) });
      case 'output_folder':
        return folders.problemOf({ folder: outputs.local.base_dir, write: true, wasMounted: false });
      case 'scratch_folder':
        return folders.problemOf({ folder: jobs.scratch_dir, write: true, wasMounted: false });
      case 'input_bucket':
        if (inputs.s3 !== undefined)
          await probeInputBucket({ ...inputs.s3, bounds: BUCKET_BOUNDS }, name, launcher, BUCKET_BOUND_MS);
        return null;
      case 'output_bucket':
        if (outputs.s3 !== undefined) {
          const settings = { ...outputs.s3, buckets: [name], bounds: BUCKET_BOUNDS };
          await probeBuckets(settings, launcher, BUCKET_BOUND_MS);
        }
        return null;
      case 'operation':
        return null;
      case 'signer':
        return problemOfSigning(dependency, parts);
      case 'time_stamp_authority': {
        // A connection costs nothing.
        const problem = await problemOfConnections(dependency, parts);
        if (problem !== null) return problem;
        stampedAtMs.set(idOf(dependency), performance.now());
        return problemOfSigning(dependency, parts);
      }
    }
  };
  return {
    problemOf: async (dependency) => {
      try {
        return await use(dependency);
      } catch (error) {
        // The message around the cause is that of a start.
        const { problem } = (error instanceof AppError ? error.details : {}) as { readonly problem?: string };
        return problem?.replace(/\.$/, '') ?? (error as Error).message;
      }
    },
    minPauseMs: (dependency) => {
      const askedAtMs = stampedAtMs.get(idOf(dependency));
      return askedAtMs === undefined ? 0 : Math.max(0, askedAtMs + TIME_STAMP_INTERVAL_MS - performance.now());
    },
    hostOf: ({ kind }) => {
      const url = servers[kind]?.endpoint_url;
      return url === undefined ? undefined : new URL(url).host;
    },
  };
}

/** Signs with an identity, with a time-stamp of its authorities where it is about those. */
async function problemOfSigning(dependency: Dependency, parts: Parts): Promise<string | null> {
  const { config, signer } = parts;
  if (signer === undefined) return null;
  const identity = dependency.name ?? defaultIdentityOf(config());
  if (dependency.kind === 'signer') return problemOfStaples(signer, identity) ?? probeSigning(signer, identity);
  return probeSigning(signer, identity, { ...authoritiesOf(dependency, parts), isRequired: true });
}

/** Returns why none of the authorities of an identity, or of those without their own, takes a connection. */
async function problemOfConnections(dependency: Dependency, parts: Parts): Promise<string | null> {
  const { urls, timeoutMs } = authoritiesOf(dependency, parts);
  const problems = await Promise.all(
    urls.map(async (url) => {
      const problem = await connectionProblemOf(url, timeoutMs);
      return problem === null ? null : `${new URL(url).host} ${problem}`;
    }),
  );
  return problems.includes(null) ? null : problems.join('; ');
}

function authoritiesOf({ name }: Dependency, { config }: Parts) {
  const { signing } = config();
  const own = name === undefined ? undefined : signing.identities[name]?.tsa_url;
  return { urls: own ?? signing.tsa_url, timeoutMs: signing.tsa_timeout_ms };
}

/** Returns why nothing is signed with the certificate of an identity: it is revoked, or lacks an OCSP response that is required. */
function problemOfStaples(signer: Signers, name: string): string | null {
  const [leaf] = signer.identityOf(name)?.certificateChain ?? [];
  return leaf === undefined ? null : (signer.staples?.current.refusalOf(Buffer.from(leaf, 'base64')) ?? null);
}

/** Tells whether another file system is mounted at a path than above it. */
function isMountPoint(path: string): boolean {
  try {
    return statSync(path).dev !== statSync(dirname(path)).dev;
  } catch {
    return false;
  }
}
