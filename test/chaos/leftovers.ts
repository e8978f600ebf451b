import { existsSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** Where a node keeps what must be gone when nothing runs. */
const WORKING_FOLDERS = ['data/staging', 'data/uploads', 'data/scratch'];

/** In the folder of outputs: what nodes tell each other of what they delivered. */
const RECORDS_FOLDER = '.attestream';

/** Where nodes work, and the folder that they all deliver to. */
interface WorkingPlaces {
  readonly homes: readonly string[];
  readonly outputs: string;
}

/**
 * What nodes at rest must not have: notes, staged files, scratch files, and outputs that no result told of.
 * `delivered` holds every output path that there ever was; what is inside a delivered folder is that output's affair.
 */
export function leftoversIn({ homes, outputs }: WorkingPlaces, delivered: ReadonlySet<string>): string[] {
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
