import assert from 'node:assert/strict';
import { closeSync, mkdirSync, openSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { InputResolver, localFileOpener } from '#inputs/input-resolver.ts';
import type { InputContext, InputOutcome, InputPhase, OperationRooms } from '#operations/operation.ts';
import { signAudioFile } from '#operations/sign-audio.ts';
import { LocalSink } from '#outputs/local/local-sink.ts';
import { createOutputReader } from '#provenance/reading/output-reader.ts';
import { smallWav, testAuthor } from '../provenance/sign-wav.ts';

interface Signing {
  readonly output: string;
  /** What the job was told, in order. */
  readonly told: readonly (InputPhase | 'settling')[];
  readonly outcome: Promise<InputOutcome>;
}

/** Signs a small file as a worker does. `reached` may do something at a phase. */
async function signing(
  t: TestContext,
  {
    readBack,
    reached,
    dataBytes,
  }: { readBack: boolean; dataBytes?: number; reached?: (phase: InputPhase, output: string) => void },
): Promise<Signing> {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-sign-file-'));
  t.after(() => rm(folder, { recursive: true }));
  const [output, dataDir, path] = [join(folder, 'output'), join(folder, 'data'), join(folder, 'sound.wav')];
  mkdirSync(dataDir);
  writeFileSync(path, smallWav(dataBytes));
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const told: (InputPhase | 'settling')[] = [];
  const context: InputContext = {
    signal: new AbortController().signal,
    scratch: new ScratchSpace({ dir: folder, dataDir }, key),
    progress: () => undefined,
    opened: () => undefined,
    reached: (phase) => {
      told.push(phase);
      reached?.(phase, output);
    },
    claimDestination: () => Promise.resolve(),
    mayDeliver: () => Promise.resolve(),
    settling: () => void told.push('settling'),
  };
  const rooms: Pick<OperationRooms, 'inputs' | 'outputs' | 'author' | 'reader'> = {
    inputs: new InputResolver({ local_file_path: localFileOpener({ roots: undefined, protectedPaths: [] }) }),
    outputs: new LocalSink({ baseDir: output, dataDir }),
    author: testAuthor(),
    reader: readBack ? createOutputReader() : null,
  };
  const input = { type: 'local_file_path', path } as const;
  const work = { ...key, operation: 'c2pa-audio', input, output: null, params: undefined } as const;
  return { output, told, outcome: signAudioFile(work, context, rooms as OperationRooms) };
}

test('an output that does not read back as it was signed is not delivered, and nothing of it stays', async (t) => {
  const spoil = (phase: InputPhase, output: string) => {
    if (phase !== 'signed') return;
    const [staged = ''] = readdirSync(output);
    const file = openSync(join(output, staged), 'r+');
    writeSync(file, Buffer.from('spoilt'), 0, 6, 1000);
    closeSync(file);
  };
  const { output, told, outcome } = await signing(t, { readBack: true, reached: spoil });
  await assert.rejects(outcome, { reason: 'READ_BACK_FAILED' });
  assert.deepEqual(readdirSync(output), []);
  assert(told.includes('settling'), 'the next input may have begun by then');
});

test('the next input may begin when the output is copied, for a large one when it is read back as well', async (t) => {
  const plain = await signing(t, { readBack: false });
  await plain.outcome;
  assert.deepEqual(plain.told.slice(-4), ['settling', 'signed', 'sealed', 'delivered']);

  const checked = await signing(t, { readBack: true });
  await checked.outcome;
  assert.equal(checked.told.at(checked.told.indexOf('copied') + 1), 'settling');
  assert(checked.told.includes('verified') && checked.told.includes('sealed'));

  const large = await signing(t, { readBack: true, dataBytes: 2_000_000 });
  await large.outcome;
  assert.deepEqual(large.told.slice(-2), ['settling', 'delivered']);
});
