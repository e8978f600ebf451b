import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Makes a folder that is removed when the process exits: after all that tests tear down, such as services that still write
 * to it. Hooks of the test runner would run in the order in which they were added, the folder's first.
 */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-test-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
