// Preloaded into the service and all its processes (`--import`) by structure-report.ts: writes coverage at an interval,
// since processes that are killed write none, and passes itself on to every Node process that is started from here.
import childProcess, { type SpawnOptions } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { takeCoverage } from 'node:v8';

const COVERAGE_INTERVAL_MS = 100;

setInterval(takeCoverage, COVERAGE_INTERVAL_MS).unref();

const folder = process.env['NODE_V8_COVERAGE'];
const { spawn } = childProcess;
childProcess.spawn = ((program: string, args: readonly string[], options: SpawnOptions) => {
  const node = args.indexOf(process.execPath);
  const preload = ['--import', import.meta.url];
  const passedOn = program === process.execPath ? [...preload, ...args] : args.toSpliced(node + 1, 0, ...preload);
  const isNode = program === process.execPath || node !== -1;
  return spawn(program, isNode ? passedOn : args, { ...options, env: { ...options.env, NODE_V8_COVERAGE: folder } });
}) as typeof spawn;
syncBuiltinESMExports();
