import { entry, STORE_UNUSABLE } from './entry.ts';

/** What an input may use up. */
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

/** What can be wrong with a job's queue, its store, or the processes that work on its inputs. */
export const jobErrors = {
  QUEUE_FULL: entry<{ waiting: number; asked: number; limit: number }>(
    'SERVICE_OVERLOADED',
    ({ waiting, asked, limit }) =>
      `The queue is full: ${waiting} of at most ${limit} inputs are waiting, and ${asked} more were submitted. Try again later, or raise worker.queue_capacity.`,
    { transient: true },
  ),
  JOB_EXCEEDS_QUEUE: entry<{ asked: number; limit: number }>(
    'VALIDATION_FAILED',
    ({ asked, limit }) =>
      `The request has ${asked} inputs, and the queue takes at most ${limit}. Split it into smaller ones, or raise worker.queue_capacity.`,
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
    'INTERNAL_ERROR',
    ({ file, problem }) =>
      `The job database ${file} cannot be opened: ${problem}. Let the user of the service own the file and its folder.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_READ_ONLY: entry<{ file: string }>(
    'INTERNAL_ERROR',
    ({ file }) =>
      `The job database ${file} cannot be written. Let the user of the service own the file and its folder, on a file system that is mounted for writing.`,
    { callersSee: STORE_UNUSABLE },
  ),
  STORE_DISK_FULL: entry<{ file: string }>(
    'INTERNAL_ERROR',
    ({ file }) =>
      `The job database ${file} cannot grow: the disk is full. Make room; nothing that was accepted is lost.`,
    { transient: true, callersSee: STORE_UNUSABLE },
  ),
  STORE_IO_FAILED: entry<{ file: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ file, problem }) => `Reading or writing the job database ${file} failed: ${problem}. Check the disk.`,
    { transient: true, callersSee: STORE_UNUSABLE },
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
    'INTERNAL_ERROR',
    ({ file }) =>
      `The connection to the job database ${file} is lost. Start the service again; nothing that was accepted is lost.`,
    { transient: true, callersSee: STORE_UNUSABLE },
  ),

  INPUT_ENDED_PROCESS: entry<{ times: number; how: string }>(
    'PROCESSING_FAILED',
    ({ times, how }) =>
      `The processing of this input ended the process that worked on it ${times} times, the last time ${how}. It is not tried again; check whether the file is damaged.`,
    { operational: true },
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
    { operational: true },
  ),
  INPUT_MET_BUG: entry<{ jobId: string; inputIndex: number }>(
    'INTERNAL_ERROR',
    ({ jobId, inputIndex }) =>
      `Something went wrong in the service while this input was processed. Its log tells what, under job ${jobId}, input ${inputIndex}.`,
  ),
};
