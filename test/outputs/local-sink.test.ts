import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { allocatePages } from '#bytes/buffers.ts';
import { isStagedName, type StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import { byteSinkContract } from '../bytes/byte-sink-contract.ts';
import { openSmallDisk } from '../support/small-disk.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';
import { cachedBytes, makeDirectFolder } from './page-cache.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
const key: StagingKey = { jobId: '0198c0de-0000-7000-8000-000000000001', inputIndex: 4, attempt: 2 };

let folder: string;
let baseDir: string;
let dataDir: string;
let sink: LocalSink;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'attestream-local-sink-'));
  await chmod(folder, 0o755);
  baseDir = join(folder, 'out');
  dataDir = join(folder, 'data');
  sink = new LocalSink({ baseDir, dataDir });
});
afterEach(() => rm(folder, { recursive: true }));

byteSinkContract('a staged local file', async () => {
  const place = await mkdtemp(join(tmpdir(), 'attestream-sink-contract-'));
  const local = new LocalSink({ baseDir: join(place, 'out'), dataDir: join(place, 'data') });
  const destination = local.destinationOf({ type: 'local', prefix: 'a/b', name: 'c' }, 'clip_c2pa.mp4');
  return {
    stage: (sizeBytes) => local.stageFile(destination, sizeBytes, key, never),
    delivered: () => readFile(destination).catch(() => null),
    leftovers: async () => {
      const beside = (await readdir(dirname(destination))).filter((name) => name !== 'clip_c2pa.mp4');
      return [...beside, ...(await readdir(join(place, 'data', 'staging')))];
    },
    cleanUp: () => rm(place, { recursive: true }),
  };
});

describe('a local output', () => {
  const cachedOf = async (sizeBytes: number, readBack: boolean): Promise<number> => {
    const place = await makeDirectFolder();
    const local = new LocalSink({ baseDir: join(place, 'out'), dataDir, readBack });
    try {
      const file = await local.stageFile(join(place, 'out/a.mp4'), sizeBytes, key, never);
      await file.write(allocatePages(MIB), 0, never);
      await file.seal(never);
      return cachedBytes(await realpath(file.stagedPath ?? ''));
    } finally {
      await rm(place, { recursive: true });
    }
  };

  test('of many bytes goes around the page cache, a small one through it', async () => {
    assert.equal(await cachedOf(16 * MIB, false), 0);
    assert.equal(await cachedOf(16 * MIB - 1, false), MIB);
  });

  test('that is read back goes through it, unless it would take most of the memory', async () => {
    assert.equal(await cachedOf(16 * MIB, true), MIB);
    // In place of an output of many gigabytes: little memory that is to be had.
    const { availableMemory } = process;
    process.availableMemory = () => 30 * MIB;
    try {
      assert.equal(await cachedOf(16 * MIB, true), 0);
    } finally {
      process.availableMemory = availableMemory;
    }
  });
});

describe('placing a local output', () => {
  test('composes base, prefix, name and leaf', () => {
    const place = (output: ApiOutputSpec | null) => sink.destinationOf(output, 'a.mp4').slice(baseDir.length);
    assert.equal(place(null), '/a.mp4');
    assert.equal(place({ type: 'local' }), '/a.mp4');
    assert.equal(place({ type: 'local', prefix: '/', name: null }), '/a.mp4');
    assert.equal(place({ type: 'local', prefix: 'x/y/', name: 'z' }), '/x/y/z/a.mp4');
  });
});

describe('staging a local output', () => {
  test('writes beside the destination under a hidden name, whatever the length of the leaf', async () => {
    const destination = sink.destinationOf({ type: 'local', prefix: 'p' }, `${'n'.repeat(251)}.mp4`);
    const staged = await stage(destination, 'bytes');
    assert.equal(await realpath(dirname(staged.stagedPath ?? '')), dirname(destination));
    const names = await readdir(dirname(destination));
    assert.ok(names.length === 1 && names.every(isStagedName));
    await staged.commit(never);
    assert.deepEqual(await readdir(dirname(destination)), [`${'n'.repeat(251)}.mp4`]);
  });

  test('refuses a leaf that no file system takes, and a destination that is a folder', async () => {
    await mkdir(join(baseDir, 'taken.mp4'), { recursive: true });
    await writeFile(join(baseDir, 'file'), '');
    await refuses('OUTPUT_IS_FOLDER', () => stage(join(baseDir, 'taken.mp4')));
    await refuses('OUTPUT_FAILED', () => stage(join(baseDir, `${'n'.repeat(256)}.mp4`)));
    await refuses('OUTPUT_FAILED', () => stage(join(baseDir, 'file', 'a.mp4')));
    await nothingStaged();
  });

  test('does not replace a folder that appears while it stages', async () => {
    const staged = await stage(join(baseDir, 'a.mp4'));
    await mkdir(join(baseDir, 'a.mp4'));
    await refuses('OUTPUT_IS_FOLDER', () => staged.commit(never));
    await staged.discard();
    await nothingStaged();
  });

  test('refuses a link that leads out of the base, and takes one that stays inside', async () => {
    await mkdir(join(baseDir, 'real'), { recursive: true });
    await mkdir(join(folder, 'elsewhere'));
    await symlink(join(folder, 'elsewhere'), join(baseDir, 'out-of-it'));
    await symlink(join(baseDir, 'real'), join(baseDir, 'inside'));
    await refuses('OUTPUT_LEAVES_BASE', () => stage(join(baseDir, 'out-of-it', 'a.mp4')));
    await refuses('OUTPUT_LEAVES_BASE', () => stage(join(baseDir, 'out-of-it', 'deeper', 'a.mp4')));
    assert.deepEqual(await readdir(join(folder, 'elsewhere')), []);
    const staged = await stage(join(baseDir, 'inside', 'a.mp4'), 'bytes');
    await staged.commit(never);
    assert.equal(await readFile(join(baseDir, 'real', 'a.mp4'), 'latin1'), 'bytes');
  });

  test('refuses what is, holds or lies inside a place of the service itself, also through a link', async () => {
    const keys = join(baseDir, 'keys', 'key.pem');
    sink = new LocalSink({ baseDir, dataDir: join(baseDir, 'data'), recordsDir: join(baseDir, '.notes') });
    const linked = join(baseDir, 'linked.pem');
    const guarded = new LocalSink({ baseDir, dataDir, protectedPaths: [dataDir, keys, linked] });
    await mkdir(join(baseDir, 'data'), { recursive: true });
    await mkdir(dirname(keys));
    await symlink(join(baseDir, 'data'), join(baseDir, 'link'));
    // Committing an output replaces the link, and the service would read the output in place of the key.
    await writeFile(join(folder, 'elsewhere.pem'), 'a key');
    await symlink(join(folder, 'elsewhere.pem'), linked);
    await refuses('OUTPUT_IN_OWN_PLACE', () => guarded.stageFile(linked, 0, key, never));
    for (const place of ['data/identity', '.notes/deliveries/x', '.notes', 'link/x']) {
      await refuses('OUTPUT_IN_OWN_PLACE', () => stage(join(baseDir, place)));
      await refuses('OUTPUT_IN_OWN_PLACE', () => sink.stageFolder(join(baseDir, place), 0, key, never));
    }
    await refuses('OUTPUT_IN_OWN_PLACE', () => guarded.stageFolder(join(baseDir, 'keys'), 0, key, never));
    await refuses('OUTPUT_IN_OWN_PLACE', () => guarded.stageFile(keys, 0, key, never));
    assert.deepEqual((await readdir(baseDir, { recursive: true })).sort(), ['data', 'keys', 'link', 'linked.pem']);
    await (await stage(join(baseDir, 'data-too', 'a.mp4'), 'bytes')).commit(never);
  });

  test('takes a base that is a link itself', async () => {
    await mkdir(join(folder, 'mounted'));
    await symlink(join(folder, 'mounted'), baseDir);
    const staged = await stage(join(baseDir, 'x', 'a.mp4'), 'bytes');
    await staged.commit(never);
    assert.equal(await readFile(join(folder, 'mounted', 'x', 'a.mp4'), 'latin1'), 'bytes');
    assert.equal(staged.destination, join(baseDir, 'x', 'a.mp4'));
  });

  test('says of a base, or a folder below it, that it is a link that leads nowhere', async () => {
    await symlink(join(folder, 'not-mounted'), baseDir);
    await refuses('OUTPUT_LINK_DANGLING', () => stage(join(baseDir, 'a.mp4')));
    await rm(baseDir);
    await mkdir(baseDir);
    await symlink(join(folder, 'not-mounted'), join(baseDir, 'x'));
    await refuses('OUTPUT_LINK_DANGLING', () => stage(join(baseDir, 'x', 'a.mp4')));
  });

  test('replaces a link at the destination, never what it leads to', async () => {
    await mkdir(baseDir);
    await writeFile(join(folder, 'source.mp4'), 'source');
    await symlink(join(folder, 'source.mp4'), join(baseDir, 'a.mp4'));
    const staged = await stage(join(baseDir, 'a.mp4'), 'signed');
    await staged.commit(never);
    assert.equal(await readFile(join(folder, 'source.mp4'), 'latin1'), 'source');
    assert.equal(await readFile(join(baseDir, 'a.mp4'), 'latin1'), 'signed');
  });

  test('says that it has no permission', async () => {
    await mkdir(baseDir, { mode: 0o555 });
    await mkdir(dataDir);
    await chmod(dataDir, 0o777);
    await withoutPrivileges(async () => {
      await refuses('OUTPUT_FAILED', () => stage(join(baseDir, 'a.mp4')));
      await refuses('OUTPUT_FAILED', () => stage(join(baseDir, 'new', 'a.mp4')));
    });
    await nothingStaged();
  });

  test('makes the folders of its notes again where they were removed meanwhile', async () => {
    for (const removed of ['staging', 'spare-notes']) {
      const destination = join(baseDir, `${removed}.mp4`);
      await (await sink.stageFile(destination, 4, key, never)).discard();
      await rm(join(dataDir, removed), { recursive: true });
      const staged = await sink.stageFile(destination, 4, key, never);
      await staged.seal(never);
      await staged.commit(never);
      assert.deepEqual(await readdir(join(dataDir, 'staging')), []);
    }
  });

  test('starts anew where the same attempt left something', async () => {
    const destination = join(baseDir, 'a.mp4');
    await stage(destination, 'left behind and longer');
    const again = await stage(destination, 'whole');
    await again.commit(never);
    assert.equal(await readFile(destination, 'latin1'), 'whole');
    await nothingStaged();
  });
});

describe('a disk without room', () => {
  test('is noticed before anything is written', async () => {
    const disk = await openSmallDisk(8 * MIB);
    try {
      const small = new LocalSink({ baseDir: disk.path, dataDir });
      const destination = small.destinationOf(null, 'a.mp4');
      await refuses('OUTPUT_DISK_FULL', () => small.stageFile(destination, 8 * MIB, key, never));
      await refuses('OUTPUT_EXCEEDS_DISK', () => small.stageFile(destination, Number.MAX_SAFE_INTEGER, key, never));
      assert.deepEqual(await readdir(disk.path), []);
      await (await small.stageFile(destination, 4 * MIB, key, never)).discard();
    } finally {
      await disk.cleanUp();
    }
  });

  test('keeps the bytes that other outputs of the node have reserved and not written, until they end', async () => {
    const disk = await openSmallDisk(16 * MIB);
    try {
      // Two workers: each knows of the other by the journal alone.
      const [one, other] = [1, 2].map(() => new LocalSink({ baseDir: disk.path, dataDir })) as [LocalSink, LocalSink];
      const [a, b] = ['a.mp4', 'b.mp4'].map((name) => one.destinationOf(null, name)) as [string, string];
      const later = { ...key, inputIndex: 1 };
      const stageLater = (sizeBytes: number) => other.stageFile(b, sizeBytes, later, never);
      const running = await one.stageFile(a, 8 * MIB, key, never);
      await refuses('OUTPUT_DISK_FULL', () => stageLater(8 * MIB));
      await refuses('OUTPUT_DISK_FULL', () => other.stageFolder(b, 8 * MIB, later, never));
      await (await stageLater(6 * MIB)).discard();
      await running.write(Buffer.alloc(4 * MIB), 0, never);
      await (await stageLater(6 * MIB)).discard();
      await running.discard();
      await (await stageLater(8 * MIB)).discard();

      await one.stageFolder(a, 8 * MIB, key, never);
      await refuses('OUTPUT_DISK_FULL', () => stageLater(8 * MIB));
      await recoverStagings(dataDir, key);
      await (await stageLater(8 * MIB)).discard();
      await nothingStaged();
    } finally {
      await disk.cleanUp();
    }
  });

  test('fails the write that no longer fits, and leaves nothing', async () => {
    const disk = await openSmallDisk(4 * MIB);
    try {
      const small = new LocalSink({ baseDir: disk.path, dataDir });
      const staged = await small.stageFile(small.destinationOf(null, 'a.mp4'), 1, key, never);
      await refuses('OUTPUT_DISK_FILLED', async () => {
        for (let position = 0; position < 16 * MIB; position += MIB)
          await staged.write(Buffer.alloc(MIB), position, never);
      });
      await staged.discard();
      assert.deepEqual(await readdir(disk.path), []);
      await nothingStaged();
    } finally {
      await disk.cleanUp();
    }
  });
});

describe('recovering from a process that was killed', () => {
  test('removes what it had staged and its notes, and nothing that was delivered', async () => {
    const [killed] = await stageInChild(3);
    assert.ok(killed !== undefined);
    assert.equal((await readdir(baseDir)).filter(isStagedName).length, 3);
    await writeFile(join(baseDir, 'delivered.mp4'), 'delivered');
    const removed = await recoverStagings(dataDir);
    assert.equal(removed.length, 3);
    assert.deepEqual(await readdir(baseDir), ['delivered.mp4']);
    await nothingStaged();
    assert.deepEqual(await recoverStagings(dataDir), []);
  });

  test('removes only what one attempt at an input had staged when asked for that', async () => {
    await stageInChild(3);
    const removed = await recoverStagings(dataDir, { jobId: 'job', inputIndex: 1, attempt: 1 });
    assert.equal(removed.length, 1);
    assert.equal((await readdir(baseDir)).length, 2);
  });

  test('touches no file with another name, whatever a note says', async () => {
    await mkdir(join(dataDir, 'staging'), { recursive: true });
    await writeFile(join(folder, 'precious.mp4'), 'precious');
    await symlink(join(folder, 'precious.mp4'), join(dataDir, 'staging', 'job-0-1-00000000'));
    await writeFile(join(dataDir, 'staging', 'no-note'), '');
    assert.deepEqual(await recoverStagings(dataDir), []);
    assert.equal((await stat(join(folder, 'precious.mp4'))).size, 8);
  });

  test('finds nothing where nothing was ever staged', async () => {
    assert.deepEqual(await recoverStagings(join(folder, 'new')), []);
  });

  test('removes what it can, and names what it cannot', async () => {
    await stageInChild(3);
    const staging = join(dataDir, 'staging');
    const unreachable = join(folder, 'circle', `.attestream-${'0'.repeat(32)}.part`);
    await symlink('circle', join(folder, 'circle'));
    for (const name of ['a-0-1-00000000', 'z-0-1-00000000']) await writeFile(join(staging, name), `${unreachable}\0`);
    await assert.rejects(recoverStagings(dataDir), ({ errors }: AggregateError) => {
      assert.deepEqual(
        errors.map(({ reason, details }: AppError) => [reason, details['path']]),
        [
          ['OUTPUT_FAILED', unreachable],
          ['OUTPUT_FAILED', unreachable],
        ],
      );
      return true;
    });
    assert.deepEqual((await readdir(staging)).sort(), ['a-0-1-00000000', 'z-0-1-00000000']);
    assert.deepEqual(await readdir(baseDir), []);
  });

  test('removes a note that a power cut left without what it said', async () => {
    const staging = join(dataDir, 'staging');
    await mkdir(staging, { recursive: true });
    await writeFile(join(staging, 'job-0-1-0123abcd'), '');
    await writeFile(join(staging, 'job-1-1-0123abcd'), Buffer.alloc(100));
    await writeFile(join(staging, 'theirs'), 'no note');
    await recoverStagings(dataDir);
    assert.deepEqual(await readdir(staging), ['theirs']);
  });
});

/** Stages and seals; with no bytes, an empty file. */
async function stage(destination: string, bytes = '') {
  const staged = await sink.stageFile(destination, bytes.length, key, never);
  await staged.write(Buffer.from(bytes), 0, never);
  await staged.seal(never);
  return staged;
}

async function nothingStaged(): Promise<void> {
  assert.deepEqual(await readdir(join(dataDir, 'staging')).catch(() => []), []);
  assert.deepEqual((await readdir(baseDir).catch(() => [])).filter(isStagedName), []);
}

/** Stages inputs of the job `job` in a process that is killed with them half written. Returns their staged paths. */
async function stageInChild(count: number): Promise<string[]> {
  const script = join(import.meta.dirname, 'stage-and-wait.ts');
  const child = spawn(process.execPath, [script, baseDir, dataDir, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGKILL');
  await once(child, 'exit');
  return said.toString().trim().split('\n');
}

async function refuses(reason: Reason, run: () => Promise<unknown>): Promise<void> {
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.reason, reason);
    return true;
  });
}
