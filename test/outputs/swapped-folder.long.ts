import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm, symlink, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import { filesIn, fill, NEW, putFiles } from './publication-files.ts';

/** Outputs of each test. Without directory handles, one in about a hundred lands elsewhere. */
const OUTPUT_COUNT = 600;
const PUBLICATION_COUNT = 150;

const never = new AbortController().signal;

let place: string;
let baseDir: string;
let dataDir: string;
let elsewhere: string;
let sink: LocalSink;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-swapped-'));
  baseDir = join(place, 'out');
  dataDir = join(place, 'data');
  elsewhere = join(place, 'elsewhere');
  sink = new LocalSink({ baseDir, dataDir });
  await mkdir(elsewhere);
});
afterEach(() => rm(place, { recursive: true }));

/** Each of these folders is replaced by a link to a folder outside while outputs are written below it. */
describe('a folder that is replaced by a link while outputs are written', () => {
  test('never lets a file land where the link leads', async () => {
    const prefix = { type: 'local', prefix: 'a/b' } as const;
    await mkdir(join(baseDir, 'a/b'), { recursive: true });
    const deliver = async (inputIndex: number) => {
      const destination = sink.destinationOf(prefix, `${inputIndex}.mp4`);
      const staged = await sink.stageFile(destination, 4, { jobId: 'job', inputIndex, attempt: 1 }, never);
      try {
        await staged.write(Buffer.from('file'), 0, never);
        await staged.seal(never);
        await staged.commit(never);
      } catch (error) {
        await staged.discard();
        throw error;
      }
    };
    await whileSwapping('a', () => attempts(OUTPUT_COUNT, deliver));
    // How many were delivered meanwhile depends on which process ran when: it may be none.
    await deliver(OUTPUT_COUNT);
    assert.deepEqual(await readdir(elsewhere), []);
  });

  for (const [title, swapped] of [
    ['above the destination', 'a'],
    ['that is the destination', 'a/talk'],
    ['inside the destination', 'a/talk/v'],
  ] as const) {
    test(`never lets a publication land where the link leads: a folder ${title}`, async () => {
      await putFiles(join(baseDir, 'a/talk'), { 'notes.txt': 'theirs', 'v/notes.txt': 'theirs' });
      await putFiles(elsewhere, { 'talk/v/theirs.txt': 'theirs', 'v/theirs.txt': 'theirs' });
      const before = await filesIn(elsewhere);
      await whileSwapping(swapped, () =>
        attempts(PUBLICATION_COUNT, async (inputIndex) => {
          const destination = sink.destinationOf({ type: 'local', prefix: 'a' }, 'talk');
          const staged = await sink.stageFolder(destination, 100, { jobId: 'job', inputIndex, attempt: 1 }, never);
          try {
            await (await fill(staged, NEW)).commit(never);
          } catch (error) {
            await staged.discard();
            throw error;
          }
        }),
      );
      assert.deepEqual(await filesIn(elsewhere), before);
    });
  }

  for (const [title, replace] of [
    ['moved', async () => undefined],
    ['replaced by a folder', () => mkdir(join(baseDir, 'a'))],
    ['replaced by a link', () => symlink(elsewhere, join(baseDir, 'a'))],
  ] as const) {
    test(`fails outputs that would not appear under their path: it was ${title}`, async () => {
      const staging = { jobId: 'job', inputIndex: 0, attempt: 1 };
      const fileAt = sink.destinationOf({ type: 'local', prefix: 'a' }, 'clip.mp4');
      const file = await sink.stageFile(fileAt, 4, staging, never);
      await file.seal(never);
      const talk = sink.destinationOf({ type: 'local', prefix: 'a' }, 'talk');
      const publication = await fill(await sink.stageFolder(talk, 100, staging, never), NEW);
      await rename(join(baseDir, 'a'), join(baseDir, 'away'));
      await replace();
      for (const staged of [file, publication]) {
        await assert.rejects(staged.commit(never), { reason: 'OUTPUT_FAILED' });
        await staged.discard();
      }
      assert.deepEqual([await readdir(join(baseDir, 'away')), await readdir(elsewhere)], [[], []]);
    });
  }

  test('never has recovery remove anything where the link leads', async () => {
    await mkdir(join(baseDir, 'a'), { recursive: true });
    const destination = sink.destinationOf({ type: 'local', prefix: 'a' }, 'talk');
    await sink.stageFolder(destination, 100, { jobId: 'job', inputIndex: 0, attempt: 1 }, never);
    const [stagedName = ''] = await readdir(join(baseDir, 'a'));
    await putFiles(join(elsewhere, stagedName), { 'precious.mp4': 'precious' });
    await whileSwapping('a', async () => {
      for (let round = 0; round < OUTPUT_COUNT; round += 1) await recoverStagings(dataDir);
    });
    assert.deepEqual(await filesIn(elsewhere), { [`${stagedName}/precious.mp4`]: 'precious' });
  });

  test('is recovered once it is a folder again', async () => {
    const folder = join(baseDir, 'a');
    await mkdir(folder, { recursive: true });
    const destination = sink.destinationOf({ type: 'local', prefix: 'a' }, 'talk');
    await sink.stageFolder(destination, 100, { jobId: 'job', inputIndex: 0, attempt: 1 }, never);
    await rename(folder, join(baseDir, 'away'));
    await symlink(elsewhere, folder);
    await recoverStagings(dataDir);
    await unlink(folder);
    await rename(join(baseDir, 'away'), folder);
    assert.equal((await readdir(folder)).length, 1);
    await recoverStagings(dataDir);
    assert.deepEqual(await readdir(folder), []);
  });
});

/** Runs while another process swaps the folder for a link to `elsewhere`. */
async function whileSwapping(folder: string, run: () => Promise<void>): Promise<void> {
  const script = join(import.meta.dirname, 'swap-folder.ts');
  const child = spawn(process.execPath, [script, join(baseDir, folder), elsewhere], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  await once(child.stdout, 'readable');
  try {
    await run();
  } finally {
    child.stdin.end();
    const [said, [code]] = await Promise.all([text(child.stdout), exit]);
    assert.equal(code, 0);
    assert.ok(Number(said.trim().split('\n').at(-1)) > 0, 'the folder was replaced');
  }
}

/** Does it so many times. Outputs may fail here, with an error that says so. */
async function attempts(count: number, attempt: (index: number) => Promise<void>): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    try {
      await attempt(index);
    } catch (error) {
      assert.ok(error instanceof AppError, String(error));
    }
  }
}
