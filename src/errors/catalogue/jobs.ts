import { entry, STORE_UNUSABLE } from '../entry.ts';

/** The names of the budgets of an input. */
type BudgetName = 'cpu_time' | 'wall_time' | 'memory' | 'open_files' | 'output_size';

const BUDGET_NAMES: Readonly<Record<BudgetName, string>> = {
  cpu_time: 'processor time',
  wall_time: 'time for one phase',
  memory: 'memory',
  open_files: 'open files',
  output_size: 'bytes written',
};

const BUDGET_KEYS: Readonly<Record<BudgetName, string>> = {
  cpu_time: 'worker.budgets.cpu_seconds_base or worker.budgets.cpu_seconds_per_gib',
  wall_time: 'worker.budgets.phase_seconds_base or worker.budgets.phase_seconds_per_gib',
  memory: 'worker.budgets.memory_bytes',
  open_files: 'worker.budgets.open_files',
  output_size: 'worker.budgets.output_bytes_base or worker.budgets.output_factor',
};

/** Errors of a job's queue, its store, and the processes that work on its inputs. */
export const jobErrors = {
  QUEUE_FULL: entry<{ waiting: number; asked: number; limit: number }>(
    'SERVICE_OVERLOADED',
    ({ waiting, asked, limit }) =>
      `The queue is full: ${waiting} of at most ${limit} inputs are waiting, and ${asked} more were submitted. Try again later, or raise worker.queue_capacity.`,
    { class: 'retry' },
  ),
  DEPENDENCY_AWAY: entry<{ kind: string; waiting: number; limit: number }>(
    'SERVICE_UNAVAILABLE',
    ({ kind, waiting, limit }) =>
      `A part of this deployment (${kind}) is away that the inputs need, and ${waiting} of at most ${limit} inputs wait for it. Try again later; /v2/health/ready tells the operator what is away and why.`,
    { class: 'retry' },
  ),
  CALLER_QUEUE_FULL: entry<{ waiting: number; asked: number; free: number }>(
    'CALLER_LIMIT',
    ({ waiting, asked, free }) =>
      `${waiting} inputs of this caller are waiting, ${asked} more were submitted, and the queue takes at most ${free} of them now: the rest is reserved for other callers. Try again later.`,
    { class: 'retry' },
  ),
  JOB_EXCEEDS_QUEUE: entry<{ asked: number; limit: number }>(
    'VALIDATION_FAILED',
    ({ asked, limit }) =>
      `The request has ${asked} inputs, and the queue takes at most ${limit} of one caller. Split it into smaller ones, or raise worker.queue_capacity.`,
  ),

  STORE_IN_USE: entry<{ folder: string; pid: number | null }>(
    'INTERNAL_ERROR',
    ({ folder, pid }) =>
      `The data folder ${folder} is in use by another process${pid === null ? '' : `, probably the one with the id ${pid}`}. Stop it, or give this one a folder of its own with jobs.data_dir.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_FOLDER_UNUSABLE: entry<{ folder: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ folder, problem }) =>
      `The data folder ${folder} cannot be used: ${problem}. Correct its permissions, or choose another with jobs.data_dir.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_UNREADABLE: entry<{ file: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ file, problem }) =>
      `The job database ${file} cannot be opened: ${problem}. Let the user of the service own the file and its folder.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_READ_ONLY: entry<{ file: string }>(
    'SERVICE_UNAVAILABLE',
    ({ file }) =>
      `The job database ${file} cannot be written. Let the user of the service own the file and its folder, on a file system that is mounted for writing.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_DISK_FULL: entry<{ file: string }>(
    'SERVICE_UNAVAILABLE',
    ({ file }) =>
      `The job database ${file} cannot grow: the disk is full. Free disk space; nothing that was accepted is lost.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  STORE_IO_FAILED: entry<{ file: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ file, problem }) => `Reading or writing the job database ${file} failed: ${problem}. Check the disk.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  STORE_CORRUPT: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) =>
      `The job database ${file} is damaged or no database of this service: ${problem}. Put back a copy of it, or move it away to start with an empty one.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_NEWER: entry<{ file: string; version: number; known: number }>(
    'INTERNAL_ERROR',
    ({ file, version, known }) =>
      `The job database ${file} has version ${version}, made by a newer release; this one knows versions up to ${known}. Start the newer release, or choose another folder with jobs.data_dir.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_LOST: entry<{ file: string }>(
    'SERVICE_UNAVAILABLE',
    ({ file }) =>
      `The connection to the job database ${file} is lost. Start the service again; what was accepted is in that file, wherever it was moved to.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  INPUT_ENDED_PROCESS: entry<{ times: number; how: string }>(
    'PROCESSING_FAILED',
    ({ times, how }) =>
      `The processing of this input ended the process that worked on it ${times} times, the last time ${how}. It is not tried again; check whether the file is damaged.`,
    { class: 'service' },
  ),
  INPUT_OVER_BUDGET: entry<{
    budget: BudgetName;
    unit: 'seconds' | 'bytes' | 'files';
    limit: number;
    used: number;
    phase: string;
  }>(
    'PROCESSING_FAILED',
    ({ budget, unit, limit, used, phase }) =>
      `This input exceeded its budget of ${BUDGET_NAMES[budget]}: it used ${used} ${unit} of at most ${limit}, and had reached the phase "${phase}". It is not tried again; check whether the file is damaged. If it is sound, raise ${BUDGET_KEYS[budget]}.`,
    { class: 'service' },
  ),
  INPUT_MET_BUG: entry<{ jobId: string; inputIndex: number }>(
    'INTERNAL_ERROR',
    ({ jobId, inputIndex }) =>
      `Something went wrong in the service while this input was processed. Its log tells what, under job ${jobId}, input ${inputIndex}.`,
  ),
};

/** Errors of the PostgreSQL database that nodes share. `address` never holds a user or password. */
export const databaseErrors = {
  DATABASE_UNREACHABLE: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The database ${address} cannot be reached: ${problem}. Check that it runs and jobs.database_url leads to it; nothing that was accepted is lost.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  DATABASE_REFUSES_LOGIN: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The database ${address} refuses the login: ${problem}. Correct the user and password in jobs.database_url, or what the server allows (pg_hba.conf).`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_CERTIFICATE_UNTRUSTED: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The certificate of the database ${address} is not trusted: ${problem}. Let sslrootcert in jobs.database_url name a PEM file of its authority that the service can read, and use the host name that the certificate is for.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  DATABASE_MISSING: entry<{ address: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address }) =>
      `There is no database ${address} on the server. Create it (createdb), or correct its name in jobs.database_url.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_FORBIDS: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The database ${address} does not permit what the service needs: ${problem}. Let its user own the database, or grant it CREATE on it.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_READ_ONLY: entry<{ address: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address }) =>
      `The database ${address} can only be read. Point jobs.database_url to the primary server, or let it be written.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  DATABASE_FULL: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The server of the database ${address} is out of disk space or memory: ${problem}. Free some of it; nothing that was accepted is lost.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  DATABASE_TOO_SLOW: entry<{ address: string; problem: string }>(
    'SERVICE_UNAVAILABLE',
    ({ address, problem }) =>
      `The database ${address} did not finish a statement: ${problem}. Find out what holds it up, and let statement_timeout and lock_timeout be 15 seconds or more for the user of jobs.database_url; nothing that was accepted is lost.`,
    { class: 'outage', callersSee: STORE_UNUSABLE },
  ),
  DATABASE_POOLED: entry<{ address: string }>(
    'INTERNAL_ERROR',
    ({ address }) =>
      `The database ${address} is reached through a pooler that gives its sessions to others between transactions, as PgBouncer does with pool_mode = transaction or statement. Point jobs.database_url to the server itself, or set pool_mode = session for this database.`,
    { callersSee: STORE_UNUSABLE },
  ),
  DATABASE_TOO_OLD: entry<{ address: string; version: string }>(
    'INTERNAL_ERROR',
    ({ address, version }) =>
      `The server of the database ${address} is PostgreSQL ${version}; 13 is the oldest that will do. Use a newer one.`,
    { callersSee: STORE_UNUSABLE },
  ),
  NODE_OUTPUTS_DIFFER: entry<{
    node: string;
    differences: readonly { readonly key: string; readonly here: string; readonly there: string }[];
  }>(
    'INTERNAL_ERROR',
    ({ node, differences }) =>
      `Another node of the cluster (${node}) writes outputs elsewhere: ${differences.map(({ key, here, there }) => `${key} is "${here}" here and "${there}" there`).join('; ')}. Give all nodes the same; to change it, stop all of them before the first one starts with the new one.`,
    { callersSee: STORE_UNUSABLE },
  ),
  NODE_KNOWS_ONE_IDENTITY: entry<{ node: string }>(
    'INTERNAL_ERROR',
    ({ node }) =>
      `Another node of the cluster (${node}) is of a release that signs everything with one identity. Stop or upgrade it before a node with [signing.identities] starts.`,
    { callersSee: STORE_UNUSABLE },
  ),
  OPERATION_UNKNOWN: entry<{ operation: string }>(
    'INTERNAL_ERROR',
    ({ operation }) =>
      `The job asks for the operation "${operation}", which this release does not have: a newer one took the job. Finish it with that release.`,
    { class: 'outage', dependencies: ['operation'] },
  ),
  LEASE_LOST: entry<{ jobId: string; inputIndex: number }>(
    'INTERNAL_ERROR',
    ({ jobId, inputIndex }) =>
      `This node's lease on input ${inputIndex} of job ${jobId} expired before the output was committed, so nothing was published. Another node runs the input.`,
    { class: 'retry' },
  ),
  NODE_TAKES_NO_JOBS: entry<Record<never, never>>(
    'NOT_FOUND',
    () =>
      'This node has the role "worker": it does jobs and takes none. Send them to a node with the role "api" or "all".',
  ),
};

/** Errors of the configuration. Each stops the start, so no caller of the API sees them. */
export const configErrors = {
  OPTION_FILE_UNUSABLE: entry<{ file: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ file, problem }) => `The file "${file}" cannot be used: ${problem}.`,
  ),
  OUTPUT_FOLDER_MISSING: entry(
    'VALIDATION_FAILED',
    () => 'Nothing can be written beside an address. Name a folder for the output with --output.',
  ),
  CONFIG_INVALID: entry<{ problems: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ problems }) =>
      `The configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${problems.map((problem) => `  - ${problem}`).join('\n')}\nThe keys are explained in config/service.toml, and by: attestream config explain KEY.`,
  ),
  OPTIONAL_PACKAGES_MISSING: entry<{ keys: readonly string[]; lacking: readonly string[]; wanted: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ keys, lacking, wanted }) =>
      `The configuration asks for optional packages with ${keys.join(' and ')}: ${lacking.join(', ')}. Install them with: npm install ${wanted.join(' ')}; or remove what is configured there.`,
  ),
  CONFIG_FILE_MALFORMED: entry<{ file: string; line: number; column: number; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, line, column, problem }) => `${file}, line ${line}, column ${column}: ${problem}. Correct it there.`,
  ),
  CONFIG_FILE_UNREADABLE: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) =>
      `The configuration file ${file} cannot be read: ${problem}. Correct the path or the permissions.`,
  ),
  LOG_LEVEL_UNKNOWN: entry<{ levels: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ levels }) => `LOG_LEVEL names no level. Set it to one of ${levels.join(', ')}, or leave it unset.`,
  ),
  FOLDER_UNUSABLE: entry<{ key: string; folder: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ key, folder, problem }) =>
      `The folder ${folder} cannot be used: ${problem}. Correct that, or set ${key} to another.`,
  ),
  SANDBOX_UNAVAILABLE: entry<{ problem: string; remedy: string }>(
    'INTERNAL_ERROR',
    ({ problem, remedy }) =>
      `worker.sandbox is "require", and this system gives workers no sandbox: ${problem}. ${remedy} Or set worker.sandbox to "auto".`,
  ),
  BIND_FAILED: entry<{ address: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ address, problem }) =>
      `The service cannot listen on ${address}: ${problem}. Set server.bind_addr (or SERVICE__SERVER__BIND_ADDR) to an address and port that are free here.`,
  ),
};
