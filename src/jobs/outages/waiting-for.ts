import type { Config } from '#config/config.ts';
import type { WaitingFor } from '#contract/job.ts';
import type { ListedJob } from '#contract/job-list.ts';
import type { AwayDependency } from '#contract/service.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { DEPENDENCY_KINDS, type DependencyKind } from '#errors/entry.ts';
import type { JobScope } from '../caller.ts';
import { dependencyOf, shownIdOf, signingNeeds } from '../dependencies.ts';
import type { JobStore, WaitingInputs } from '../store/job-store.ts';
import type { Outage } from './outages.ts';

/** Told to callers who are no admins, in place of the message, which names hosts and folders. */
const PUBLIC_MESSAGES: Readonly<Record<DependencyKind, string>> = {
  input_bucket: 'A bucket that inputs are read from cannot be used now.',
  output_bucket: 'A bucket that outputs are written to cannot be used now.',
  input_folder: 'A folder that inputs are read from cannot be used now.',
  output_folder: 'Outputs cannot be written to the disk of the service now, or do not fit on it.',
  scratch_folder: 'The disk that inputs lie on while they are worked on cannot be used now, or is full.',
  time_stamp_authority: 'No time-stamp authority answers now.',
  signer: 'The signing key cannot be used now.',
  operation: 'No node that has been asked has the operation: it belongs to a newer release.',
};

const GOES_ON = 'The inputs wait, and go on by themselves.';

/** Adds what inputs of unfinished jobs wait for, as admins see it. */
export async function withWaiting<J extends ListedJob>(
  jobs: readonly J[],
  outages: readonly Outage[],
  store: Pick<JobStore, 'waitingInputs'>,
): Promise<readonly J[]> {
  const unfinished = jobs.flatMap(({ job_id: id, progress }) => (progress === undefined ? [] : [id]));
  if (unfinished.length === 0) return jobs;
  const waiting = await store.waitingInputs(
    unfinished,
    outages.map(({ dependency }) => dependency),
  );
  if (waiting.length === 0) return jobs;
  return jobs.map((job) => {
    const own = waiting.filter(({ jobId }) => jobId === job.job_id).flatMap((inputs) => entryOf(inputs, outages) ?? []);
    return own.length === 0 ? job : { ...job, waiting_for: own };
  });
}

function entryOf({ dependency, count, since, error }: WaitingInputs, outages: readonly Outage[]): WaitingFor | null {
  const outage = outages.find((one) => one.dependency === dependency);
  const met = error ?? outage?.error;
  if (met === undefined) return null;
  const sinceMs = since ?? new Date(outage?.sinceMs ?? 0).toISOString();
  return {
    dependency: shownIdOf(dependency),
    reason: met.reason,
    message: `${messageOf(met, outage?.host)} ${GOES_ON}`,
    since: sinceMs,
    inputs: count,
  };
}

/** Returns the message of an outage for admins. */
function messageOf(error: AppErrorData, host: string | undefined): string {
  const { message } = AppError.fromData(error);
  return host === undefined ? message : `${message} The endpoint is ${host}.`;
}

/** Returns an outage as `/v2/health/ready` shows it. */
export function awayDependencyOf(
  { dependency, error, host, sinceMs, allowed }: Outage,
  isAdmin: boolean,
): AwayDependency {
  const kind = dependencyOf(dependency)?.kind ?? 'unknown';
  return {
    dependency: isAdmin ? shownIdOf(dependency) : kind,
    state: allowed > 0 ? 'returning' : 'away',
    since: new Date(sinceMs).toISOString(),
    reason: error.reason,
    message: isAdmin || kind === 'unknown' ? messageOf(error, host) : PUBLIC_MESSAGES[kind],
  };
}

/** Returns the kinds of the dependencies that are away. */
export function kindsAway(outages: readonly Outage[]): readonly DependencyKind[] {
  const away = outages.filter(({ allowed }) => allowed === 0);
  return DEPENDENCY_KINDS.filter((kind) => away.some(({ dependency }) => dependencyOf(dependency)?.kind === kind));
}

/** Tells whether nothing is away that each signature with an identity needs. */
export function maySign(identity: string, outages: readonly Outage[], config: Config): boolean {
  const needs = signingNeeds(identity, config);
  return outages.every(({ dependency, allowed }) => allowed > 0 || !needs.includes(dependency));
}

/** Returns a job as callers see it who are no admins: without the names of buckets, folders and hosts. */
function withoutNames<J extends ListedJob>(job: J): J {
  if (job.waiting_for === undefined) return job;
  return {
    ...job,
    waiting_for: job.waiting_for.map(({ dependency, ...entry }) => {
      const kind = dependencyOf(dependency)?.kind;
      const message = kind === undefined ? GOES_ON : `${PUBLIC_MESSAGES[kind]} ${GOES_ON}`;
      return { ...entry, dependency: kind ?? 'unknown', message };
    }),
  };
}

/** Returns a job as somebody in the scope sees it. */
export function seenBy<J extends ListedJob>(job: J, { caller }: JobScope): J {
  return caller === undefined ? job : withoutNames(job);
}
