// Started by tests instead of the process for dry runs. The first label of a batch decides its behaviour.
import { setTimeout as sleep } from 'node:timers/promises';
import { serveParent, tellParent } from '#processes/parent.ts';
import type { DryRunRequest } from '#provenance/dry-run/dry-run-process.ts';

if (process.env['EXIT_AT_START'] === 'yes') process.exit(3);

serveParent(async (request: DryRunRequest) => {
  const label = request === 'start' ? undefined : request.assertions[0]?.label;
  if (label === 'x.die') process.abort();
  if (label === 'x.hang') for (;;);
  const held: Buffer[] = [];
  while (label === 'x.grow') {
    // 512 MiB are over the budget of the test; more could exceed the limit of the kernel first.
    if (held.length < 32) held.push(Buffer.alloc(16 * 1024 * 1024, 1));
    await sleep(5);
  }
  tellParent({ answer: { refusal: null } });
});
