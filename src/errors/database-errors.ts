import { entry, STORE_UNUSABLE } from './entry.ts';

/** What can be wrong with the PostgreSQL database that nodes share. `place` never holds a user or password. */
export const databaseErrors = {
  DATABASE_UNREACHABLE: entry<{ place: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ place, problem }) =>
      `The database ${place} cannot be reached: ${problem}. Check that it runs and jobs.database_url leads to it; nothing that was accepted is lost.`,
    { transient: true, callersSee: STORE_UNUSABLE },
  ),
  DATABASE_REFUSES_LOGIN: entry<{ place: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ place, problem }) =>
      `The database ${place} refuses the login: ${problem}. Correct the user and password in jobs.database_url, or what the server allows (pg_hba.conf).`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_MISSING: entry<{ place: string }>(
    'INTERNAL_ERROR',
    ({ place }) =>
      `There is no database ${place} on the server. Create it (createdb), or correct its name in jobs.database_url.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_FORBIDS: entry<{ place: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ place, problem }) =>
      `The database ${place} does not permit what the service needs: ${problem}. Let its user own the database, or grant it CREATE on it.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_READ_ONLY: entry<{ place: string }>(
    'INTERNAL_ERROR',
    ({ place }) =>
      `The database ${place} can only be read. Point jobs.database_url to the primary server, or let it be written.`,
    { transient: true, callersSee: STORE_UNUSABLE },
  ),
  DATABASE_FULL: entry<{ place: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ place, problem }) =>
      `The database ${place} has no room: ${problem}. Make room on its server; nothing that was accepted is lost.`,
    { transient: true, callersSee: STORE_UNUSABLE },
  ),
  DATABASE_POOLED: entry<{ place: string }>(
    'INTERNAL_ERROR',
    ({ place }) =>
      `The database ${place} is reached through a pooler that gives its sessions to others between transactions, as PgBouncer does with pool_mode = transaction or statement. Point jobs.database_url to the server itself, or set pool_mode = session for this database.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_TOO_OLD: entry<{ place: string; version: string }>(
    'INTERNAL_ERROR',
    ({ place, version }) =>
      `The server of the database ${place} is PostgreSQL ${version}; 13 is the oldest that will do. Use a newer one.`,
    { callersSee: STORE_UNUSABLE },
  ),
  OPERATION_UNKNOWN: entry<{ operation: string }>(
    'INTERNAL_ERROR',
    ({ operation }) =>
      `The job asks for the operation "${operation}", which this release does not have: a newer one took the job. Finish it with that release.`,
    { transient: true },
  ),
  LEASE_LOST: entry<{ jobId: string; inputIndex: number }>(
    'INTERNAL_ERROR',
    ({ jobId, inputIndex }) =>
      `This node lost its claim on input ${inputIndex} of job ${jobId} before the output was delivered, so it delivers nothing; another node does the input.`,
    { transient: true },
  ),
  NODE_TAKES_NO_JOBS: entry<Record<never, never>>(
    'NOT_FOUND',
    () =>
      'This node has the role "worker": it does jobs and takes none. Send them to a node with the role "api" or "all".',
  ),
};
