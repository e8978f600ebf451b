import { inputRunner } from '#worker.ts';
import { runInputWorker } from '#workers/input-worker.ts';
import { KILL_POINT_VARIABLE, type KillMoment, type KillPoint } from './kill-point.ts';

const given = process.env[KILL_POINT_VARIABLE];
const point = given === undefined ? null : (JSON.parse(given) as KillPoint);
let timesReached = 0;

runInputWorker({
  async start(config, worker) {
    const run = await inputRunner.start(config, worker);
    return async (work, context) => {
      const reached = (moment: KillMoment) => killAt(work.operation, moment);
      reached('started');
      const outcome = await run(work, {
        ...context,
        reached: (phase) => {
          context.reached(phase);
          reached(phase);
        },
      });
      reached('returned');
      return outcome;
    };
  },
});

function killAt(operation: string, moment: KillMoment): void {
  if (point === null || operation !== point.operation || moment !== point.moment) return;
  timesReached += 1;
  if (timesReached !== point.nth) return;
  process.kill(process.ppid, 'SIGKILL');
  if (point.takesWorkerAlong) process.kill(process.pid, 'SIGKILL');
}
