// Started by tests in the place of the trial process: the first label says what it does with a batch.
import { setTimeout as sleep } from 'node:timers/promises';

if (process.env['TRIAL_DIES_AT_START'] === 'yes') process.exit(3);

process.on('message', async ([{ label }]: [{ readonly label: string }]) => {
  if (label === 'x.die') process.abort();
  if (label === 'x.hang') for (;;);
  const held: Buffer[] = [];
  while (label === 'x.grow') {
    held.push(Buffer.alloc(16 * 1024 * 1024, 1));
    await sleep(5);
  }
  process.send?.({ refusal: null });
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
