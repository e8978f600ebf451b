// Started by the tests of `Child`. A request says what to do.
import { serveParent, tellParent } from '#processes/parent.ts';
import type { Script } from './child.test.ts';

serveParent((script: Script) => {
  if (script === 'exit') process.exit(7);
  if (script === 'hang') for (;;);
  if (script === 'garble') process.send?.('answer');
  else if (script === 'answer nothing') tellParent({ answer: null });
  else if (script === 'talk') setInterval(() => tellParent({ event: 'still here' }), 10);
  else if (script === 'last words') {
    for (let word = 0; word < 100; word += 1) tellParent({ event: `word ${word}` });
    process.kill(process.pid, 'SIGTERM');
    process.exit(0);
  } else tellParent({ answer: script });
});
