// Runs a script of Node as packaging runs programs, until it is killed: `run-and-wait.ts <folder> <script> <argument>`.
import { runPrograms } from '#packaging/programs/run-programs.ts';

const [folder, script, argument] = process.argv.slice(2) as [string, string, string];
let looks = 0;
await runPrograms(
  [
    {
      title: 'the program',
      path: process.execPath,
      args: ['-e', script, argument],
      failure: () => new Error('it ended'),
    },
  ],
  { folder, signal: new AbortController().signal, poll: () => looks++ },
);
