// An input worker whose every input takes 5 ms, and asks the service what every input asks. Started by jobs-part.ts.
import { setTimeout as sleep } from 'node:timers/promises';
import { runInputWorker } from '#workers/input-worker.ts';

runInputWorker({
  start: async () => async (work, context) => {
    if (!('path' in work.input)) throw new Error('inputs of this worker are paths');
    const outputPath = `${work.input.path}.out`;
    await context.reserveOutputPath(outputPath);
    await sleep(5, undefined, { signal: context.signal });
    await context.confirmLease();
    return { outputPath, warnings: [], manifestDigest: null };
  },
});
