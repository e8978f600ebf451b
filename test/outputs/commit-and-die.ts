/**
 * Delivers the new publication, and kills itself after so many calls that change the disk, or after the one that moves
 * the old publication `aside`. Arguments: base folder, data folder, calls, and whether they
 * count from `staging` or from `commit` on. Says `done` where it needs no more than that.
 */
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { LocalSink } from '#outputs/local-sink.ts';
import { fill, NEW } from './publication-files.ts';

const [baseDir = '', dataDir = '', calls = '0', from = 'staging'] = process.argv.slice(2);
let counting = from === 'staging';
let callsLeft = calls === 'aside' ? Number.POSITIVE_INFINITY : Number(calls);

function count<Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>) {
  return async (...args: Args): Promise<Result> => {
    const result = await call(...args);
    if (counting) callsLeft -= 1;
    const movedAside = calls === 'aside' && String(args[1]).endsWith('.old');
    if (callsLeft <= 0 || movedAside) process.kill(process.pid, 'SIGKILL');
    return result;
  };
}

fs.mkdir = count(fs.mkdir as (...args: unknown[]) => Promise<unknown>) as typeof fs.mkdir;
fs.rename = count(fs.rename);
fs.rm = count(fs.rm);
fs.rmdir = count(fs.rmdir) as typeof fs.rmdir;
fs.unlink = count(fs.unlink);
fs.symlink = count(fs.symlink);
syncBuiltinESMExports();

const never = new AbortController().signal;
const sink = new LocalSink({ baseDir, dataDir });
const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
const staged = await sink.stageFolder(sink.destinationOf(null, 'talk'), 100, key, never);
await fill(staged, NEW);
counting = true;
await staged.commit(never);
process.stdout.write('done');
