import type { InputWork } from '#operations/operation.ts';
import { inputRunner } from '#worker.ts';
import { runInputWorker } from '#workers/input-worker.ts';

runInputWorker({
  async start(config, worker) {
    const run = await inputRunner.start(config, worker);
    return (work, context) => {
      const last = lastPhaseOf(work);
      return run(work, {
        ...context,
        reached: (phase) => {
          context.reached(phase);
          // The worker itself lives on for as long as the loss of its service takes to reach it.
          if (phase === last) process.kill(process.ppid, 'SIGKILL');
        },
      });
    };
  },
});

/** Returns the phase at which an input ends the service; undefined where no name in it asks for that, or it did so before. */
function lastPhaseOf({ input, output, attempt }: InputWork): string | undefined {
  const [, always, phase] = /(always-)?killed-when-([a-z]+)/.exec(JSON.stringify([input, output])) ?? [];
  return attempt === 1 || always !== undefined ? phase : undefined;
}
