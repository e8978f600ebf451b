/** Stages a number of outputs, says where, and waits to be killed. Arguments: base folder, data folder, count. */
import { realpathSync } from 'node:fs';
import { LocalSink } from '#outputs/local-sink.ts';

const [baseDir = '', dataDir = '', count = '1'] = process.argv.slice(2);
const never = new AbortController().signal;
const sink = new LocalSink({ baseDir, dataDir });
const stagedPaths: string[] = [];
for (let inputIndex = 0; inputIndex < Number(count); inputIndex += 1) {
  const destination = sink.destinationOf(null, `clip-${inputIndex}.mp4`);
  const staged = await sink.stageFile(destination, 10, { jobId: 'job', inputIndex, attempt: 1 }, never);
  await staged.write(Buffer.from('half'), 0, never);
  stagedPaths.push(realpathSync(staged.stagedPath ?? ''));
}
process.stdout.write(`${stagedPaths.join('\n')}\n`);
setInterval(() => undefined, 1_000_000);
