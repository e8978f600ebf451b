import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { LocalSink } from '#outputs/local-sink.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import { type Files, filesIn, fill, NEW, OLD, putFiles } from './publication-files.ts';

/** A delivery needs about 25 calls that change the disk; this many tell a test that would never end. */
const MAX_CALLS = 60;

const never = new AbortController().signal;
const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
const foreign: Files = { 'notes.txt': 'theirs' };

let place: string;
let baseDir: string;
let dataDir: string;
let destination: string;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-killed-commit-'));
  baseDir = join(place, 'out');
  dataDir = join(place, 'data');
  destination = join(baseDir, 'talk');
});
afterEach(() => rm(place, { recursive: true }));

describe('a delivery whose process is killed after each of its calls', () => {
  test('leaves the new publication whole or nothing where there was nothing', async () => {
    await atEveryCall(async () => {
      const killedWith = await filesIn(destination);
      await recover();
      const standing = await filesIn(destination);
      assert.deepEqual(standing, killedWith);
      assertOneOf(standing, [null, NEW]);
      await deliver(OLD);
      assert.deepEqual(await filesIn(destination), OLD);
    });
  });

  test('leaves the old or the new publication whole where one is replaced, and knows it for its own', async () => {
    const seen = new Set<string>();
    await atEveryCall(
      async () => {
        const killedWith = await filesIn(destination);
        assertOneOf(killedWith, [null, OLD, NEW]);
        await recover();
        const standing = await filesIn(destination);
        assertOneOf(standing, [OLD, NEW]);
        seen.add(`${nameOf(killedWith)} became ${nameOf(standing)}`);
        // Nothing of either is left behind, which would show if it were taken for somebody else's.
        await deliver({ 'other.mp4': 'other' });
        assert.deepEqual(await filesIn(destination), { 'other.mp4': 'other' });
      },
      () => deliver(OLD),
    );
    assert.deepEqual([...seen].sort(), ['new became new', 'nothing became old', 'old became old']);
  });

  test('loses nothing foreign, has no playlist before what it names, and is made whole by the next attempt', async () => {
    await atEveryCall(
      async () => {
        assertPlaylistsLast((await filesIn(destination)) ?? {});
        await recover();
        const standing = await filesIn(destination);
        for (const [path, content] of Object.entries(standing ?? {})) {
          if (!path.endsWith('/')) assert.ok([OLD[path], NEW[path], foreign[path]].includes(content), path);
        }
        assert.equal(standing?.['notes.txt'], 'theirs');
        await deliver(NEW);
        assert.deepEqual(await filesIn(destination), { ...OLD, ...NEW, ...foreign });
      },
      async () => {
        await deliver(OLD);
        await putFiles(destination, foreign);
      },
    );
  });
});

describe('recovery', () => {
  test('ends the replacement of one attempt when asked for that', async () => {
    await deliver(OLD);
    await deliverInChild('aside');
    assert.equal(await filesIn(destination), null);
    await recoverStagings(dataDir, { ...key, attempt: 2 });
    assert.equal(await filesIn(destination), null);
    await recoverStagings(dataDir, key);
    assert.deepEqual(await filesIn(destination), OLD);
  });
});

/**
 * Kills a delivery after its first call, its second, and so on until it is done, each time on a fresh disk. How something
 * is staged does not depend on what stands there, so that with something prepared the calls count from the commit on.
 */
async function atEveryCall(check: () => Promise<void>, prepare?: () => Promise<void>): Promise<void> {
  for (let calls = 1, done = false; !done; calls += 1) {
    assert.ok(calls < MAX_CALLS, 'the delivery ends');
    for (const folder of [baseDir, dataDir]) await rm(folder, { recursive: true, force: true });
    for (const folder of [baseDir, dataDir]) await mkdir(folder);
    await prepare?.();
    done = await deliverInChild(calls, prepare === undefined ? 'staging' : 'commit');
    await check();
  }
}

/** Delivers in a process that is killed after so many calls, or that which moves the old publication aside. True: done before. */
async function deliverInChild(calls: number | 'aside', from: 'staging' | 'commit' = 'commit'): Promise<boolean> {
  const script = join(import.meta.dirname, 'commit-and-die.ts');
  const child = spawn(process.execPath, [script, baseDir, dataDir, String(calls), from], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  assert.ok(code === 0 || signal === 'SIGKILL', `the child ended with ${code ?? signal}`);
  return said === 'done';
}

async function recover(): Promise<void> {
  await recoverStagings(dataDir);
  assert.deepEqual(await readdir(join(dataDir, 'staging')).catch(() => []), []);
  assert.deepEqual(
    (await readdir(baseDir)).filter((name) => name !== 'talk'),
    [],
  );
}

async function deliver(files: Files): Promise<void> {
  const sink = new LocalSink({ baseDir, dataDir });
  const staged = await sink.stageFolder(destination, 100, { ...key, attempt: 2 }, never);
  await (await fill(staged, files)).commit(never);
}

function assertOneOf(standing: Files | null, wholes: readonly (Files | null)[]): void {
  assert.ok(
    wholes.some((whole) => nameOf(whole) === nameOf(standing)),
    JSON.stringify(standing),
  );
}

/** Media comes before playlists, and inner playlists before outer ones. */
function assertPlaylistsLast(standing: Files): void {
  const missing = Object.keys(NEW).filter((path) => standing[path] !== NEW[path]);
  if (standing['v/720/index.m3u8'] === NEW['v/720/index.m3u8']) {
    assert.ok(
      missing.every((path) => path === 'master.m3u8'),
      missing.join(),
    );
  }
  if (standing['master.m3u8'] === NEW['master.m3u8']) assert.deepEqual(missing, []);
}

/** Returns the version of the publication at the path, recognised by its content. */
function nameOf(files: Files | null): string {
  const key = (each: Files) => JSON.stringify(Object.entries(each).sort());
  if (files === null) return 'nothing';
  if (key(files) === key(OLD)) return 'old';
  return key(files) === key(NEW) ? 'new' : key(files);
}
