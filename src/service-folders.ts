import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmdirSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { Log } from '#telemetry/logger.ts';

/** Transient errors: a full disk may have space again. */
const TRANSIENT = new Set(['ENOSPC', 'EDQUOT']);

/** Meanings of error codes of `mkdir`, as the end of a sentence. */
const PROBLEMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EEXIST: 'it exists and is not a folder',
    ENOENT: 'a link in the path leads nowhere, or no folder can be made there',
  }),
);

/** Permission bits of the group and of others. */
const OTHERS_MODE = 0o077;

/** A folder of the service and its check. */
interface FolderCheck {
  readonly key: string;
  readonly folder: string;
  /** Makes the folder where it is missing, and takes rights away that others may not have. Throws `FOLDER_UNUSABLE`. */
  readonly check: () => void;
}

/** Returns the checks of the folders that the service writes. */
export function folderChecks({ jobs, output_sinks: { local } }: Config, log: Log): readonly FolderCheck[] {
  const checkOf = (key: string, folder: string, mode: number): FolderCheck => ({
    key,
    folder,
    check: () => requireFolder(key, folder, mode),
  });
  const jobsFolder = checkOf('jobs.data_dir', jobs.data_dir, 0o700);
  const checkJobsFolder = () => {
    jobsFolder.check();
    requirePrivate(jobsFolder.key, jobsFolder.folder, log);
  };
  const dataDir = { ...jobsFolder, check: checkJobsFolder };
  if (jobs.role === 'api') return [dataDir];
  const outputs = checkOf(OUTPUTS_KEY, local.base_dir, 0o777);
  const checkOutputs = () => {
    outputs.check();
    requireApart('jobs.data_dir', jobs.data_dir, local.base_dir);
    requireApart('jobs.scratch_dir', jobs.scratch_dir, local.base_dir);
  };
  return [dataDir, checkOf('jobs.scratch_dir', jobs.scratch_dir, 0o700), { ...outputs, check: checkOutputs }];
}

const OUTPUTS_KEY = 'output_sinks.local.base_dir';

/** Throws `FOLDER_UNUSABLE`. If S3 is configured, an unusable folder of local outputs is only logged. */
export function requireFolders(config: Config, log: Log): void {
  for (const { key, check } of folderChecks(config, log)) {
    try {
      check();
    } catch (error) {
      const isSpare = key === OUTPUTS_KEY && config.output_sinks.s3 !== undefined;
      if (!isSpare || !(error instanceof AppError)) throw error;
      log.warn({ reason: error.reason }, error.message);
    }
  }
}

function requireFolder(key: string, folder: string, mode: number): void {
  const problem = problemOfFolder(folder, mode);
  if (problem !== null) throw new AppError('FOLDER_UNUSABLE', { key, folder, problem });
}

/** Takes the rights of others on a folder away. Throws `FOLDER_UNUSABLE` where that is up to another user, who owns it. */
export function requirePrivate(key: string, folder: string, log: Log): void {
  const { mode, uid } = statSync(folder);
  if ((mode & OTHERS_MODE) === 0) return;
  const rights = (mode & 0o777).toString(8).padStart(4, '0');
  if (uid !== process.geteuid?.()) {
    const problem = `it belongs to the user ${uid}, and its mode (${rights}) lets others in than the service`;
    throw new AppError('FOLDER_UNUSABLE', { key, folder, problem });
  }
  chmodSync(folder, 0o700);
  log.warn({ folder, mode: rights }, `others had rights on ${key}: its mode is 0700 now`);
}

/** Throws `FOLDER_UNUSABLE` when outputs would lie in a folder of the service itself. Both folders exist. */
function requireApart(ownKey: string, ownFolder: string, folder: string): void {
  if (!isSameOrInside(realpathSync(folder), realpathSync(ownFolder))) return;
  const problem = `it is, or lies in, ${ownKey}, where no output is written`;
  throw new AppError('FOLDER_UNUSABLE', { key: OUTPUTS_KEY, folder, problem });
}

/**
 * Makes a folder durably where it is missing, with its parents, and checks that it is writable. Returns the problem, as
 * the end of a sentence, or null.
 */
export function problemOfFolder(folder: string, mode: number): string | null {
  try {
    makeFolders(folder, mode);
    rmdirSync(mkdtempSync(join(folder, '.attestream-')));
    return null;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    if (TRANSIENT.has(code)) return null;
    return PROBLEMS.get(code) ?? problemOf(error);
  }
}

/**
 * Does the same as `mkdir -p`. Node's recursive mkdir loops for ever where a folder cannot be made in an existing
 * parent, as in /proc.
 */
function makeFolders(folder: string, mode: number): void {
  if (makeFolder(folder, mode)) return;
  makeFolders(dirname(folder), mode);
  if (!makeFolder(folder, mode)) mkdirSync(folder, { mode });
}

/** Makes the entries of a folder durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes one folder. Returns false where its parent is missing. */
function makeFolder(folder: string, mode: number): boolean {
  try {
    mkdirSync(folder, { mode });
    syncFolder(dirname(folder));
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST' && statSync(folder).isDirectory()) return true;
    if (code === 'ENOENT' && !existsSync(dirname(folder)) && dirname(folder) !== folder) return false;
    throw error;
  }
}
