import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Options of the removal of a folder in which processes that are ending may still make files. */
export const REMOVAL = { recursive: true, force: true, maxRetries: 10 } as const;

const folders: string[] = [];

// After all that tests tear down, such as services that still write to a folder. Hooks of the test runner would run in the
// order in which they were added, the folder's first.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, REMOVAL);
});

/** Makes a folder that is removed when the process exits. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-test-'));
  folders.push(folder);
  return folder;
}
