import { inputRunner } from '#worker.ts';
import { runInputWorker } from '#workers/input-worker.ts';

runInputWorker({
  async start(config, worker) {
    const run = await inputRunner.start(config, worker);
    return (work, context) => {
      const isGreedy = JSON.stringify(work.input).includes('greedy.wav');
      if (isGreedy)
        worker.signers
          ?.identityOf('sport')
          .signer.sign(Buffer.from('something'))
          .catch(() => undefined);
      return run(work, context);
    };
  },
});
