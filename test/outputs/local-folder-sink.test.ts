import assert from 'node:assert/strict';
import { generateKeySync } from 'node:crypto';
import { closeSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { isStagedName, type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { stagingSecretIn } from '#outputs/local/staged-entries.ts';
import { LocalSink } from '#outputs/local-sink.ts';
import { openSmallDisk } from '../support/small-disk.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';
import { folderSinkContract } from './folder-sink-contract.ts';
import { type Files, filesIn, fill, NEW, OLD, putFiles } from './publication-files.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
const key: StagingKey = { jobId: '0198c0de-0000-7000-8000-000000000001', inputIndex: 4, attempt: 2 };

let place: string;
let baseDir: string;
let dataDir: string;
let sink: LocalSink;
let destination: string;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-folder-sink-'));
  await chmod(place, 0o755);
  baseDir = join(place, 'out');
  dataDir = join(place, 'data');
  sink = new LocalSink({ baseDir, dataDir });
  destination = sink.destinationOf(null, 'talk');
});
afterEach(() => rm(place, { recursive: true }));

folderSinkContract('a staged local folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-folder-contract-'));
  const local = new LocalSink({ baseDir: join(folder, 'out'), dataDir: join(folder, 'data') });
  const target = local.destinationOf({ type: 'local', prefix: 'a/b', name: 'c' }, 'talk');
  return {
    stage: (sizeBytes) => local.stageFolder(target, sizeBytes, key, never),
    delivered: () => filesIn(target),
    leftovers: async () => {
      const beside = (await readdir(dirname(target))).filter((name) => name !== 'talk');
      return [...beside, ...(await readdir(join(folder, 'data', 'staging')))];
    },
    cleanUp: () => rm(folder, { recursive: true }),
  };
});

describe('staging a local folder', () => {
  test('refuses a file and a link at the destination, also one that appears while it stages', async () => {
    await mkdir(join(place, 'elsewhere'));
    const obstacles = [
      () => writeFile(destination, 'a file'),
      () => symlink(join(place, 'elsewhere'), destination),
      () => symlink(join(place, 'missing'), destination),
    ];
    await mkdir(baseDir);
    for (const obstruct of obstacles) {
      const staged = await fill(await sink.stageFolder(destination, 100, key, never), NEW);
      await obstruct();
      await refuses('OUTPUT_IS_FILE', () => staged.commit(never));
      await refuses('OUTPUT_IS_FILE', () => sink.stageFolder(destination, 100, key, never));
      await staged.discard();
      await rm(destination);
    }
    assert.deepEqual(await readdir(join(place, 'elsewhere')), []);
    await nothingStaged();
  });

  test('fails where a file cannot even be closed, as on a network file system whose server is gone', async () => {
    const staged = await sink.stageFolder(destination, 100, key, never);
    const part = await staged.create('1.m4s', never);
    await part.write(Buffer.from('media'), 0, never);
    const descriptors = await readdir('/proc/self/fd');
    const links = await Promise.all(descriptors.map((each) => readlink(`/proc/self/fd/${each}`).catch(() => '')));
    closeSync(Number(descriptors[links.findIndex((link) => link.endsWith('/1.m4s'))]));
    await part.close();
    await refuses('OUTPUT_FAILED', () => staged.seal(never));
    await staged.discard();
    await nothingStaged();
  });

  test('stages under a name that another service does not know, and puts nothing under such a name', async () => {
    const other = new LocalSink({ baseDir, dataDir: join(place, 'data of another service') });
    for (const each of [sink, other]) await each.stageFolder(destination, 100, key, never);
    const names = await readdir(baseDir);
    assert.equal(names.length, 2);
    assert.ok(names.every(isStagedName));
    const staged = await sink.stageFolder(destination, 100, key, never);
    await refuses('OUTPUT_NAME_RESERVED', () => staged.create(`v/${names[0]}/1.m4s`, never));
  });

  test('replaces a folder of others whole where that was asked for', async () => {
    await putFiles(destination, { ...OLD, 'notes/of others.txt': 'foreign' });
    const replacing = new LocalSink({ baseDir, dataDir, existing: 'replace' });
    const staged = await fill(await replacing.stageFolder(destination, 100, key, never), NEW);
    await staged.commit(never);
    assert.deepEqual(await filesIn(destination), NEW);
    await nothingStaged();
  });

  test('refuses a link that leads out of the base', async () => {
    await mkdir(baseDir);
    await mkdir(join(place, 'elsewhere'));
    await symlink(join(place, 'elsewhere'), join(baseDir, 'way-out'));
    const outside = sink.destinationOf({ type: 'local', prefix: 'way-out' }, 'talk');
    await refuses('OUTPUT_LEAVES_BASE', () => sink.stageFolder(outside, 100, key, never));
  });

  test('says that a name is too long, or stands in the way of a folder, and leaves nothing', async () => {
    const staged = await sink.stageFolder(destination, 100, key, never);
    await refuses('OUTPUT_FAILED', () => staged.create('n'.repeat(256), never));
    await (await staged.create('a', never)).close();
    await refuses('OUTPUT_FAILED', () => staged.create('a/b', never));
    await staged.discard();
    await nothingStaged();
  });

  test('says that it has no permission', async () => {
    await mkdir(baseDir, { mode: 0o555 });
    await mkdir(dataDir);
    await chmod(dataDir, 0o777);
    await withoutPrivileges(() => refuses('OUTPUT_FAILED', () => sink.stageFolder(destination, 100, key, never)));
    await nothingStaged();
  });

  test('starts anew where the same attempt left something', async () => {
    const left = await sink.stageFolder(destination, 100, key, never);
    await (await left.create('left/behind.m4s', never)).close();
    await deliver(NEW);
    assert.deepEqual(await filesIn(destination), NEW);
    await nothingStaged();
  });
});

describe('a folder that this service delivered to', () => {
  test('counts as its own as long as it holds nothing else, whatever was removed from it', async () => {
    await deliver(OLD);
    await rm(join(destination, 'v/720/1.m4s'));
    await rm(join(destination, 'gone'), { recursive: true });
    await deliver(NEW);
    assert.deepEqual(await filesIn(destination), NEW);
  });

  test('keeps what others put into it, and files of ours that others changed', async () => {
    const foreign: readonly Files[] = [
      { 'notes.txt': 'theirs' },
      { 'v/720/extra.vtt': 'theirs' },
      { 'deep/er/notes.txt': 'theirs' },
      { 'v/720/9.m4s': 'edited by others' },
    ];
    for (const files of foreign) {
      await deliver(OLD);
      await putFiles(destination, files);
      await deliver(NEW);
      assert.deepEqual(await filesIn(destination), { ...OLD, ...files, ...NEW });
      await rm(destination, { recursive: true });
    }
    await nothingStaged();
  });

  test('keeps an empty folder, a link and a staging of somebody else', async () => {
    const staged = stagedNameOf(
      join(destination, 'b.mp4'),
      { ...key, inputIndex: 5 },
      generateKeySync('hmac', { length: 256 }),
    );
    for (const make of [
      () => mkdir(join(destination, 'theirs')),
      () => symlink('/etc', join(destination, 'theirs')),
      () => writeFile(join(destination, staged), 'half'),
    ]) {
      await deliver(OLD);
      await make();
      const names = await readdir(destination);
      await deliver(NEW);
      const kept = await readdir(destination);
      assert.ok(names.every((name) => kept.includes(name)));
      await rm(destination, { recursive: true });
    }
  });

  test('is not taken for its own at another place, nor where another folder took its place', async () => {
    await deliver(OLD);
    await rename(destination, join(baseDir, 'moved'));
    await putFiles(destination, { 'notes.txt': 'theirs' });
    await deliver(NEW);
    assert.deepEqual(await filesIn(destination), { ...NEW, 'notes.txt': 'theirs' });

    await deliver(NEW, sink.destinationOf(null, 'moved'));
    assert.deepEqual(await filesIn(join(baseDir, 'moved')), { ...OLD, ...NEW });
  });

  test('is known again by another process of the service, and by no other record than its own', async () => {
    await deliver(OLD);
    await new LocalSink({ baseDir, dataDir })
      .stageFolder(destination, 100, { ...key, attempt: 3 }, never)
      .then(async (staged) => (await fill(staged, NEW)).commit(never));
    assert.deepEqual(await filesIn(destination), NEW);
    const [hash = ''] = await readdir(join(dataDir, 'deliveries'));
    const records = await readdir(join(dataDir, 'deliveries', hash));
    assert.equal(records.length, 1);

    await writeFile(join(dataDir, 'deliveries', hash, records[0] ?? ''), '{"place": "/elsewh'); // Torn.
    await deliver(OLD);
    assert.deepEqual(await filesIn(destination), { ...NEW, ...OLD });
  });
});

describe('a folder with foreign files', () => {
  test('gets every file of ours, in place of one of the same name, and in place of a link but not of its target', async () => {
    await putFiles(destination, { 'notes.txt': 'theirs', 'v/720/1.m4s': 'theirs' });
    await putFiles(place, { 'precious.m3u8': 'precious' });
    await symlink(join(place, 'precious.m3u8'), join(destination, 'master.m3u8'));
    await deliver(NEW);
    assert.deepEqual(await filesIn(destination), { ...NEW, 'notes.txt': 'theirs' });
    assert.equal((await stat(join(place, 'precious.m3u8'))).size, 8);
    await nothingStaged();
  });

  test('stays as it is where a folder stands in the way of a file, or a file or a link in the way of a folder', async () => {
    await mkdir(join(place, 'elsewhere'));
    for (const [reason, obstruct] of [
      ['OUTPUT_IS_FOLDER', () => putFiles(destination, { 'v/720/2.m4s/theirs.txt': 'theirs' })],
      ['OUTPUT_IS_FILE', () => putFiles(destination, { 'v/1080': 'theirs' })],
      [
        'OUTPUT_IS_FILE',
        async () => {
          await putFiles(destination, { 'notes.txt': 'theirs' });
          await symlink(join(place, 'elsewhere'), join(destination, 'v'));
        },
      ],
    ] as const) {
      await obstruct();
      const before = await filesIn(destination);
      await refuses(reason, () => deliver(NEW));
      assert.deepEqual(await filesIn(destination), before);
      assert.deepEqual(await readdir(join(place, 'elsewhere')), []);
      await rm(destination, { recursive: true });
    }
    await nothingStaged();
  });
});

describe('two deliveries to one place at the same time', () => {
  test('both succeed, and one of them stands there whole', async () => {
    for (let round = 0; round < 5; round += 1) {
      const staged = await Promise.all(
        [OLD, NEW].map(async (files, inputIndex) =>
          fill(await sink.stageFolder(destination, 100, { ...key, inputIndex }, never), files),
        ),
      );
      await Promise.all(staged.map((each) => each.commit(never)));
      const standing = await filesIn(destination);
      const whole = [OLD, NEW].some(
        (files) => JSON.stringify(sorted(files)) === JSON.stringify(sorted(standing ?? {})),
      );
      assert.ok(whole, JSON.stringify(standing));
      await rm(destination, { recursive: true });
    }
    await nothingStaged();
  });
});

describe('a disk without room for a folder', () => {
  test('is noticed before anything is written', async () => {
    const disk = await openSmallDisk(8 * MIB);
    try {
      const small = new LocalSink({ baseDir: disk.path, dataDir });
      const target = small.destinationOf(null, 'talk');
      await refuses('OUTPUT_DISK_FULL', () => small.stageFolder(target, 8 * MIB, key, never));
      assert.deepEqual(await readdir(disk.path), []);
    } finally {
      await disk.cleanUp();
    }
  });

  test('fails what no longer fits, leaves nothing, and keeps what was delivered before', async () => {
    const disk = await openSmallDisk(4 * MIB);
    try {
      const small = new LocalSink({ baseDir: disk.path, dataDir });
      const target = small.destinationOf(null, 'talk');
      await (await fill(await small.stageFolder(target, 1, key, never), OLD)).commit(never);
      const staged = await small.stageFolder(target, 1, key, never);
      await refuses('OUTPUT_DISK_FILLED', async () => {
        for (let index = 0; index < 16; index += 1) {
          const part = await staged.create(`v/${index}.m4s`, never);
          await part.write(Buffer.alloc(MIB), 0, never);
          await part.close();
        }
        await staged.seal(never);
      });
      await staged.discard();
      assert.deepEqual(await readdir(disk.path), ['talk']);
      assert.deepEqual(await filesIn(target), OLD);
      await nothingStaged();
    } finally {
      await disk.cleanUp();
    }
  });
});

async function deliver(files: Files, target = destination): Promise<void> {
  const staged = await sink.stageFolder(target, 100, key, never);
  try {
    await fill(staged, files);
    await staged.commit(never);
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

async function nothingStaged(): Promise<void> {
  assert.deepEqual(await readdir(join(dataDir, 'staging')).catch(() => []), []);
  assert.deepEqual((await readdir(baseDir).catch(() => [])).filter(isStagedName), []);
}

function sorted(files: Files): [string, string][] {
  return Object.entries(files).sort(([first], [second]) => (first < second ? -1 : 1));
}

async function refuses(reason: Reason, run: () => Promise<unknown>): Promise<void> {
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.reason, reason);
    return true;
  });
}

describe('a node that is lost for good', () => {
  const sinkOfOther = () => new LocalSink({ baseDir, dataDir: join(place, 'data of another node'), recordsDir });
  const later: StagingKey = { ...key, attempt: 5 };
  let recordsDir: string;
  beforeEach(() => {
    recordsDir = join(place, 'shared records');
    sink = new LocalSink({ baseDir, dataDir, recordsDir });
  });

  test('leaves nothing beside an output that another node delivers', async () => {
    await fill(await sink.stageFolder(destination, 100, key, never), OLD);
    await (await sink.stageFile(`${destination}.mp4`, 100, key, never)).write(Buffer.from('half'), 0, never);
    const file = await sinkOfOther().stageFile(`${destination}.mp4`, 100, later, never);
    await file.write(Buffer.from('whole'), 0, never);
    await file.seal(never);
    await file.commit(never);
    const staged = await fill(await sinkOfOther().stageFolder(destination, 100, later, never), NEW);
    await staged.commit(never);
    assert.deepEqual((await readdir(baseDir)).sort(), ['talk', 'talk.mp4']);
    assert.deepEqual(await filesIn(destination), NEW);
  });

  test('between two renames gives the old publication back before anything else is tried', async () => {
    await putFiles(destination, OLD);
    const stagedName = stagedNameOf(destination, key, stagingSecretIn(recordsDir));
    await rename(destination, join(baseDir, stagedName.replace(/part$/, 'old')));
    await putFiles(join(baseDir, stagedName), NEW);
    const staged = await sinkOfOther().stageFolder(destination, 100, later, never);
    assert.deepEqual(await filesIn(destination), OLD);
    await staged.discard();
    assert.deepEqual(await readdir(baseDir), ['talk']);
  });
});

test('a publication that one node delivered is replaced whole by another that shares its records', async () => {
  const recordsDir = join(baseDir, '.attestream');
  for (const [node, files] of [
    ['one', OLD],
    ['other', NEW],
  ] as const) {
    const own = new LocalSink({ baseDir, dataDir: join(place, node), recordsDir });
    const staged = await fill(await own.stageFolder(destination, 100, { ...key, jobId: node }, never), files);
    await staged.commit(never);
  }
  assert.deepEqual(await filesIn(destination), NEW);
});
