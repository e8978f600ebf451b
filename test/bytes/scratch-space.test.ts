import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { localCopyOf } from '#bytes/local-copies.ts';
import { clearScratchSpaces, createScratchFile, createScratchFolder, ScratchSpace } from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { MemorySource } from '../support/memory-source.ts';
import { openSmallDisk } from '../support/small-disk.ts';
import { byteSourceContract } from './byte-source-contract.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
let dir: string;
let scratch: ScratchSpace;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'attestream-scratch-'));
  scratch = new ScratchSpace({ dir, dataDir: '/data' }, key);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

byteSourceContract('a copy in the scratch space', async (content) => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-copy-'));
  const space = new ScratchSpace({ dir: folder, dataDir: '/data' }, key);
  const source = await localCopyOf(new MemorySource(content), space, never);
  return { source, cleanUp: () => rm(folder, { recursive: true }) };
});

describe('a scratch space', () => {
  test('is not on the disk before something is reserved, and is gone with everything in it when it is removed', async () => {
    await scratch.remove();
    assert.deepEqual(readdirSync(dir), []);
    for (const name of ['copy', 'copy']) await writeFile((await scratch.reserve(name, 10)).path, 'ten bytes!');
    const folder = await scratch.reserveFolder('packager', 10);
    await writeFile(join(folder.path, 'a'), 'a');
    const [space] = readdirSync(dir);
    assert.equal(statSync(join(dir, space as string)).mode & 0o077, 0);
    assert.equal(readdirSync(join(dir, space as string)).length, 4);
    await scratch.remove();
    assert.deepEqual(readdirSync(dir), []);
  });

  test('closes what it adopted before it goes', async () => {
    const { path } = await scratch.reserve('kept', 1);
    await writeFile(path, 'a');
    let there: boolean | undefined;
    scratch.adopt({
      close: async () => {
        there = existsSync(path);
      },
    });
    await scratch.remove();
    assert.equal(there, true);
  });

  test('tells how much free space is missing, reserved but unwritten space included', async (t) => {
    const disk = await openSmallDisk(8 * 1024 * 1024);
    t.after(() => disk.cleanUp());
    const small = new ScratchSpace({ dir: disk.path, dataDir: '/data' }, key);
    await refuses('SCRATCH_FULL', small.reserve('large', 7.5 * 1024 * 1024));
    await refuses('SCRATCH_EXCEEDS_DISK', small.reserve('huge', Number.MAX_SAFE_INTEGER));
    const first = await small.reserve('first', 4 * 1024 * 1024);
    await refuses('SCRATCH_FULL', small.reserve('second', 4 * 1024 * 1024));
    await writeFile(first.path, Buffer.alloc(4 * 1024 * 1024, 1));
    const second = await small.reserve('second', 2 * 1024 * 1024);
    assert.throws(() => second.extend(5 * 1024 * 1024), { reason: 'SCRATCH_FULL' });
    first.release();
    first.release();
    second.extend(5 * 1024 * 1024);
    await small.remove();
  });

  test('keeps the space that other inputs of the node have reserved and not written, until they end', async (t) => {
    const disk = await openSmallDisk(16 * MIB);
    t.after(() => disk.cleanUp());
    const location = { dir: disk.path, dataDir: '/data' };
    const running = new ScratchSpace(location, key);
    const later = new ScratchSpace(location, { ...key, attempt: 11 });
    const first = await running.reserve('first', 2 * MIB);
    first.extend(8 * MIB);
    await refuses('SCRATCH_FULL', later.reserve('second', 8 * MIB));
    await writeFile(first.path, Buffer.alloc(4 * MIB, 1));
    const refused = await later.reserve('second', 8 * MIB).catch((error: AppError) => error);
    const { freeBytes, reservedBytes } = (refused as AppError).details as { freeBytes: number; reservedBytes: number };
    assert.deepEqual([freeBytes > 15 * MIB, reservedBytes], [true, 8 * MIB]);
    first.release();
    (await later.reserve('second', 8 * MIB)).release();
    await running.reserve('third', 8 * MIB);
    await refuses('SCRATCH_FULL', later.reserve('second', 8 * MIB));
    await clearScratchSpaces(location, key);
    await later.reserve('second', 8 * MIB);
    await later.remove();
    assert.deepEqual(readdirSync(disk.path), []);
  });

  test('names the problem that keeps it from being made', async () => {
    await writeFile(join(dir, 'file'), '');
    await refuses(
      'SCRATCH_UNUSABLE',
      new ScratchSpace({ dir: join(dir, 'file'), dataDir: '/data' }, key).reserve('a', 1),
    );
  });

  test('names the problem that keeps a folder in it from being made', async () => {
    const { path, release } = await scratch.reserve('first', 1);
    release();
    await writeFile(path.replace('0-first', '1-second'), '');
    await refuses('SCRATCH_UNUSABLE', scratch.reserveFolder('second', 1));
    const third = await scratch.reserveFolder('third', 1);
    await (await createScratchFile(join(third.path, 'file'))).close();
    await refuses('SCRATCH_UNUSABLE', createScratchFolder(join(third.path, 'file')));
  });

  test('that was left behind is removed by its attempt, or with all others of the service, but not with those of another service', async () => {
    const others = new ScratchSpace({ dir, dataDir: '/other/data' }, key);
    const second = new ScratchSpace({ dir, dataDir: '/data' }, { ...key, attempt: 11 });
    for (const space of [scratch, others, second]) await space.reserve('left', 1);
    await mkdir(join(dir, 'attestream-notes'));
    assert.equal((await clearScratchSpaces({ dir, dataDir: '/data' }, key)).length, 1);
    assert.equal(readdirSync(dir).length, 3);
    assert.equal((await clearScratchSpaces({ dir, dataDir: '/data' })).length, 1);
    assert.equal(readdirSync(dir).length, 2);
    assert.deepEqual(await clearScratchSpaces({ dir: join(dir, 'missing'), dataDir: '/data' }), []);
  });
});

describe('a local copy', () => {
  test('is the source itself where that is on this host already', async () => {
    const path = join(dir, 'here');
    await writeFile(path, 'here');
    const local = Object.assign(new MemorySource(Buffer.from('here')), { localPath: path });
    assert.equal(await localCopyOf(local, scratch, never), local);
  });

  test('has the same bytes and name, and is removed with the scratch space', async () => {
    const content = Buffer.alloc(3_000_000, 'bytes');
    const copy = await localCopyOf(new MemorySource(content), scratch, never);
    assert.equal(copy.name, 'memory.bin');
    assert.ok((await readFile(copy.localPath)).equals(content));
    assert.ok((await readRange(copy, 1_000_000, 100, never)).equals(content.subarray(1_000_000, 1_000_100)));
    await scratch.remove();
    assert.equal(existsSync(copy.localPath), false);
  });

  test('leaves nothing behind where the source fails or changes', async () => {
    const failure = new AppError('SOURCE_CHANGED', { name: 'memory.bin' });
    for (const fault of [{ failFrom: 2_000_000, failure }, { changed: failure }]) {
      await refuses('SOURCE_CHANGED', localCopyOf(new MemorySource(Buffer.alloc(3_000_000), fault), scratch, never));
    }
    assert.deepEqual(readdirSync(join(dir, readdirSync(dir)[0] as string)), []);
  });
});

async function refuses(reason: Reason, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, { reason });
}
