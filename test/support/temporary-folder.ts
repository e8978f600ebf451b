import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders: string[] = [];

// After all that tests tear down, such as services that still write to a folder. Hooks of the test runner would run in the
// order in which they were added, the folder's first.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Makes a folder that is removed when the process exits. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-test-'));
  folders.push(folder);
  return folder;
}
