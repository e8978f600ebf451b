/**
 * Replaces a folder by a link to another one and puts it back, again and again, until it is told to end by the end of its
 * standard input. Arguments: the folder, where the link leads. Says `swapping` once it has begun, and how often at the end.
 */
import { renameSync, rmSync, symlinkSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

const [folder = '', elsewhere = ''] = process.argv.slice(2);
const aside = `${folder}.aside`;
let ended = false;
let swaps = 0;
process.stdin.on('end', () => {
  ended = true;
});
process.stdin.resume();
process.stdout.write('swapping\n');
while (!ended) {
  if (isDone(() => renameSync(folder, aside))) {
    if (isDone(() => symlinkSync(elsewhere, folder))) swaps += 1;
    // The service may have made the folder anew meanwhile, and may be writing there.
    while (!isDone(() => renameSync(aside, folder))) isDone(() => rmSync(folder, { force: true, recursive: true }));
  }
  await setImmediate();
}
process.stdout.write(`${swaps}\n`);

/** False where the folder is not there, or something else is in its place. */
function isDone(step: () => void): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}
