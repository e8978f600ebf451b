import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { ByteSink } from '#bytes/byte-sink.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const never = new AbortController().signal;
let count = 0;

/** Stages `film.mkv` and `film.c2pa` of an attempt. */
async function staged(home: string, attempt = 1): Promise<{ copy: ByteSink; sidecar: ByteSink }> {
  const dataDir = join(home, 'data');
  mkdirSync(dataDir, { recursive: true });
  const key = { jobId: 'job', inputIndex: 0, attempt };
  const sink = new LocalSink({ baseDir: join(home, 'output'), dataDir });
  const stage = async (name: string): Promise<ByteSink> => {
    const file = await sink.stageFile(sink.destinationOf(null, name), 3, key, never);
    await file.write(Buffer.from('new'), 0, never);
    await file.seal(never);
    return file;
  };
  return { copy: await stage('film.mkv'), sidecar: await stage('film.c2pa') };
}

/** A home with files of an earlier attempt in its output folder. */
function homeWith(files: readonly string[]): string {
  const home = join(folder, String(count++));
  mkdirSync(join(home, 'output'), { recursive: true });
  for (const name of files) writeFileSync(join(home, 'output', name), 'old');
  return home;
}

function contents(home: string): Record<string, string> {
  const names = readdirSync(join(home, 'output')).sort();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(home, 'output', name), 'utf8')]));
}

const BEFORE = [[], ['film.mkv'], ['film.c2pa'], ['film.c2pa', 'film.mkv']];
const DELIVERED = { 'film.c2pa': 'new', 'film.mkv': 'new' };

/** Never settles, as in a process that was killed. */
const dead = (): Promise<never> => Promise.withResolvers<never>().promise;

/** Lets an attempt commit until something happens that never ends. */
async function commitUntil(home: string, commitCopy: (commit: () => Promise<void>) => Promise<void>): Promise<void> {
  const { copy, sidecar } = await staged(home);
  const commit = copy.commit.bind(copy, never);
  const { promise, resolve } = Promise.withResolvers<void>();
  copy.commit = async () => {
    await commitCopy(commit);
    resolve();
    await dead();
  };
  void sidecar.commitAfter?.(copy, never);
  await promise;
}

for (const before of BEFORE) {
  describe(`a copy and its sidecar over ${before.join(' and ') || 'nothing'}`, () => {
    test('are both delivered, and nothing else stays', async () => {
      const home = homeWith(before);
      const { copy, sidecar } = await staged(home);
      await sidecar.commitAfter?.(copy, never);
      assert.deepEqual(contents(home), DELIVERED);
      assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
    });

    test('are neither delivered where the process dies before the copy has its name', async () => {
      const home = homeWith(before);
      await commitUntil(home, () => Promise.resolve());
      await recoverStagings(join(home, 'data'));
      assert.deepEqual(contents(home), Object.fromEntries(before.map((name) => [name, 'old'])));
      assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
    });

    test('are neither delivered where an attempt on another node then removed the copy and staged no sidecar', async () => {
      const home = homeWith(before);
      await commitUntil(home, () => Promise.resolve());
      const sink = new LocalSink({
        baseDir: join(home, 'output'),
        dataDir: join(home, 'other-node'),
        recordsDir: join(home, 'data'),
      });
      const copy = await sink.stageFile(
        sink.destinationOf(null, 'film.mkv'),
        3,
        { jobId: 'job', inputIndex: 0, attempt: 2 },
        never,
      );
      await copy.discard();
      await recoverStagings(join(home, 'data'));
      assert.deepEqual(contents(home), Object.fromEntries(before.map((name) => [name, 'old'])));
      assert.deepEqual(readdirSync(join(home, 'data', 'staging')), []);
    });

    test('are both delivered where the process dies when the copy has its name', async () => {
      const home = homeWith(before);
      await commitUntil(home, (commit) => commit());
      await recoverStagings(join(home, 'data'));
      assert.deepEqual(contents(home), DELIVERED);
      await recoverStagings(join(home, 'data'));
      assert.deepEqual(contents(home), DELIVERED);
    });

    test('are those of a later attempt, which knows nothing of the journal', async () => {
      const home = homeWith(before);
      await commitUntil(home, (commit) => commit());
      const { copy, sidecar } = await staged(home, 2);
      await sidecar.commitAfter?.(copy, never);
      assert.deepEqual(contents(home), DELIVERED);
      await recoverStagings(join(home, 'data'));
      assert.deepEqual(contents(home), DELIVERED);
    });

    test('are neither delivered where the copy cannot be', async () => {
      const home = homeWith(before);
      const { copy, sidecar } = await staged(home);
      const full = new Error('no space');
      copy.commit = () => Promise.reject(full);
      await assert.rejects(async () => sidecar.commitAfter?.(copy, never), full);
      await sidecar.discard();
      await copy.discard();
      assert.deepEqual(contents(home), Object.fromEntries(before.map((name) => [name, 'old'])));
    });
  });
}
