import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Folders of a node that must be empty when nothing runs. */
const WORKING_FOLDERS = ['data/staging', 'data/uploads', 'data/scratch'];

/** In the folder of outputs: what nodes tell each other of what they delivered. */
const RECORDS_FOLDER = '.attestream';

/** The nodes' folders, and the output folder that they share. */
interface WorkingFolders {
  readonly homes: readonly string[];
  readonly outputs: string;
}

/**
 * Returns what idle nodes must not have: journal entries, staged files, scratch files, and outputs that no result named.
 * `delivered` holds every output path that there ever was; what is inside a delivered folder is that output's affair.
 */
export function leftoversIn({ homes, outputs }: WorkingFolders, delivered: ReadonlySet<string>): string[] {
  const working = homes.flatMap((home) => WORKING_FOLDERS.flatMap((folder) => filesBelow(join(home, folder))));
  const unknown = filesBelow(outputs)
    .filter((path) => !path.startsWith(join(outputs, RECORDS_FOLDER, '/')))
    .filter((path) => !isDelivered(path, delivered));
  return [...working, ...unknown].map((path) => relative(dirname(outputs), path));
}

function isDelivered(path: string, delivered: ReadonlySet<string>): boolean {
  if (/\/\.[^/]*\.(part|old)(\/|$)/.test(path)) return false;
  return delivered.has(path) || [...delivered].some((output) => path.startsWith(`${output}/`));
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name));
}
