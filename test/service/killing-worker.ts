import { runInputWorker } from '#jobs/workers/input-worker.ts';
import { inputRunner } from '#worker.ts';

runInputWorker({
  async start(config, worker) {
    const run = await inputRunner.start(config, worker);
    return (work, context) =>
      run(work, {
        ...context,
        reached: (phase) => {
          context.reached(phase);
          // The worker itself lives on for as long as the loss of its service takes to reach it.
          if (phase === process.env['KILL_AT']) process.kill(process.ppid, 'SIGKILL');
        },
      });
  },
});
