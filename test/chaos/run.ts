// `npm run chaos`: kills the service again and again while it works, and shows that nothing was lost, left or half done.
import { parseArgs } from 'node:util';
import { runChaos } from './run-chaos.ts';

const USAGE = `npm run chaos -- [--rounds 100] [--from 0] [--engine embedded|postgres] [--s3] [--power] [--seed 1]
  --rounds  how many rounds; the first of them is --from
  --engine  the job store: embedded (default) or a PostgreSQL server of its own
  --s3      sends half of the outputs to an S3 server of its own
  --power   cuts the power of the disk with every kill: what was not synced is lost; embedded, as root on Linux
  --seed    repeats the choices of a run`;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    from: { type: 'string', default: '0' },
    engine: { type: 'string', default: 'embedded' },
    s3: { type: 'boolean', default: false },
    power: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const { engine, s3: withS3, power: withPowerCuts } = values;
const [rounds, from, seed] = [values.rounds, values.from, values.seed].map(Number) as [number, number, number];
const isEngine = engine === 'embedded' || (engine === 'postgres' && !withPowerCuts);
if (!isEngine || ![rounds, from, seed].every(Number.isSafeInteger)) {
  console.error(USAGE);
  process.exit(2);
}

console.log(
  `Rounds ${from} to ${rounds - 1} with the seed ${seed}, on the ${engine} engine${withS3 ? ' and S3' : ''}.`,
);
const startedAtMs = performance.now();
const onRound = (round: number) => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[Kround ${round}`);
  else if (round % 10 === 0) process.stderr.write(`round ${round}\n`);
};
// Ctrl+C ends with the round that is under way, and with what was counted; a second one at once.
const enough = new AbortController();
process.once('SIGINT', () => enough.abort());
const { signal } = enough;
const counts = await runChaos({ rounds, from, seed, engine, withS3, withPowerCuts, onRound, enough: signal });
console.log(`${counts}`);
console.log(
  `Nothing was lost, half done or left behind in ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s.`,
);
