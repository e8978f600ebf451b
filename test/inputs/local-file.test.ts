import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeySync } from 'node:crypto';
import { once } from 'node:events';
import fs, {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { Descriptor, FileSource } from '#bytes/file-source.ts';
import { stagedNameOf } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { type LocalInputPolicy, openLocalFile } from '#inputs/local/local-file.ts';
import { byteSourceContract } from '../bytes/byte-source-contract.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';

const never = new AbortController().signal;
const anywhere: LocalInputPolicy = { roots: undefined, protectedPaths: [] };
let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'attestream-local-file-'));
  await chmod(folder, 0o755);
});
after(() => rm(folder, { recursive: true }));

byteSourceContract('a local file', async (content) => {
  const path = join(folder, 'contract.bin');
  await writeFile(path, content);
  return { source: await openFile(path), cleanUp: () => rm(path) };
});

describe('opening a local file', () => {
  test('tells a missing file, a folder, and an empty file apart', async () => {
    await writeFile(join(folder, 'empty.mp4'), '');
    await refuses('SOURCE_NOT_FOUND', join(folder, 'missing.mp4'));
    await refuses('SOURCE_NOT_FOUND', join(folder, 'empty.mp4', 'below-a-file.mp4'));
    await refuses('SOURCE_IS_FOLDER', folder);
    await refuses('SOURCE_EMPTY', join(folder, 'empty.mp4'));
    await refuses('SOURCE_PATH_INVALID', join(folder, 'a\0b'));
    await refuses('SOURCE_PATH_INVALID', '');
    await refuses('SOURCE_OPEN_FAILED', join(folder, 'x'.repeat(300)));
  });

  test('says of a relative path what it is relative to, and not where that is', async () => {
    const outside: LocalInputPolicy = { roots: [join(folder, 'media')], protectedPaths: [] };
    for (const [path, policy, reason] of [
      ['missing.mp4', anywhere, 'SOURCE_NOT_FOUND'],
      ['package.json', outside, 'SOURCE_OUTSIDE_ROOTS'],
    ] as const) {
      await assert.rejects(openFile(path, policy), (error) => {
        assert.ok(error instanceof AppError && error.reason === reason);
        assert.deepEqual(error.details, { path, relativeTo: 'start_folder' });
        assert.ok(!error.message.includes(process.cwd()));
        return true;
      });
    }
    await assert.rejects(openFile(join(folder, 'missing.mp4')), { details: { path: join(folder, 'missing.mp4') } });
  });

  test('refuses a FIFO, a socket and a device without waiting for them', async () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    await refuses('SOURCE_NOT_REGULAR', fifo);

    const socket = join(folder, 'socket');
    const server = createServer().listen(socket);
    await once(server, 'listening');
    await refuses('SOURCE_NOT_REGULAR', socket);
    server.close();

    const toDevices: LocalInputPolicy = { roots: ['/dev'], protectedPaths: [] };
    await refuses('SOURCE_NOT_REGULAR', '/dev/zero', toDevices);
  });

  test('names a missing permission on the file and on a folder above it', async () => {
    const closed = join(folder, 'closed');
    await mkdir(closed);
    await writeFile(join(closed, 'a.mp4'), 'a');
    await writeFile(join(folder, 'unreadable.mp4'), 'a', { mode: 0o000 });
    await chmod(closed, 0o000);
    try {
      await withoutPrivileges(async () => {
        await refuses('SOURCE_NOT_PERMITTED', join(closed, 'a.mp4'));
        await refuses('SOURCE_NOT_PERMITTED', join(folder, 'unreadable.mp4'));
      });
    } finally {
      await chmod(closed, 0o755);
    }
  });

  test('takes a relative path from the working directory, and a link to what it leads to', async () => {
    const path = join(folder, 'target.mp4');
    await writeFile(path, 'bytes');
    await symlink(path, join(folder, 'link.mp4'));
    for (const spelling of [relative(process.cwd(), path), join(folder, 'link.mp4')]) {
      const source = await openFile(spelling);
      assert.equal(source.localPath, path);
      assert.equal((await readRange(source, 0, 5, never)).toString(), 'bytes');
      await source.close();
    }
  });

  test('gives up when the signal was aborted', async () => {
    const reason = new Error('stopped by the test');
    await assert.rejects(openLocalFile(join(folder, 'any'), 'any', anywhere, AbortSignal.abort(reason)), reason);
  });
});

describe('where local files may be read from', () => {
  test('refuses the places of the system, also through a link', async () => {
    await symlink('/etc/passwd', join(folder, 'innocent.mp4'));
    const paths = [
      '/etc/passwd',
      '/proc/self/environ',
      '/sys/kernel/version',
      '/dev/null',
      '/run/x',
      '/var/lib/x',
      '/var/log/x',
      '/boot/x',
    ];
    for (const path of [
      ...paths,
      '/root/.ssh/id_rsa',
      '/home/somebody/.aws/credentials',
      join(folder, 'innocent.mp4'),
    ]) {
      await refuses('SOURCE_IN_SYSTEM_PLACE', path);
    }
    await refuses('SOURCE_NOT_FOUND', '/home/somebody/videos/missing.mp4');
  });

  test('with roots, refuses everything else, whether it exists or not', async () => {
    const root = join(folder, 'root');
    await mkdir(root);
    await writeFile(join(root, 'in.mp4'), 'in');
    await writeFile(join(folder, 'out.mp4'), 'out');
    await symlink(join(folder, 'out.mp4'), join(root, 'escape.mp4'));
    await symlink(root, join(folder, 'way-in'));
    const policy: LocalInputPolicy = { roots: [join(folder, 'way-in')], protectedPaths: [] };
    await refuses('SOURCE_OUTSIDE_ROOTS', join(folder, 'out.mp4'), policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', join(folder, 'missing.mp4'), policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', join(root, 'escape.mp4'), policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', join(root, '..', 'out.mp4'), policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', `${root}-beside/in.mp4`, policy);
    await refuses('SOURCE_NOT_FOUND', join(root, 'missing.mp4'), policy);
    for (const path of [join(root, 'in.mp4'), join(folder, 'way-in', 'in.mp4')]) {
      await (await openFile(path, policy)).close();
    }
  });

  test('never reads what belongs to the service, even inside a root', async () => {
    const data = join(folder, 'data');
    await mkdir(data);
    await writeFile(join(data, 'jobs.sqlite'), 'secret');
    await writeFile(join(folder, 'key.pem'), 'secret');
    await symlink(data, join(folder, 'data-link'));
    const policy: LocalInputPolicy = {
      roots: [folder],
      protectedPaths: [join(folder, 'data-link'), join(folder, 'key.pem')],
    };
    await refuses('SOURCE_PROTECTED', join(data, 'jobs.sqlite'), policy);
    await refuses('SOURCE_PROTECTED', join(folder, 'key.pem'), policy);

    const staged = join(
      folder,
      stagedNameOf('/out/a.mp4', { jobId: 'job', inputIndex: 0, attempt: 1 }, generateKeySync('hmac', { length: 256 })),
    );
    await writeFile(staged, 'half');
    await refuses('SOURCE_PROTECTED', staged, policy);
    await rm(staged);
    await mkdir(join(staged, 'v'), { recursive: true });
    await writeFile(join(staged, 'v', '1.m4s'), 'half');
    await refuses('SOURCE_PROTECTED', join(staged, 'v', '1.m4s'), policy);
  });
});

describe('folders that hang', () => {
  test('do not stop files of other roots, and files of their own wait for them', async (t) => {
    const [root, away, own] = ['root-there', 'root-away', 'own-away'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    await mkdir(root);
    await mkdir(away);
    for (const each of [root, away]) await writeFile(join(each, 'a.mp4'), 'media');
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const { realpath } = fs;
    const mocked = t.mock.method(fs, 'realpath', async (path: string) => {
      if (path === away || path === own) await answered;
      return await realpath(path);
    });
    syncBuiltinESMExports();
    const policy: LocalInputPolicy = { roots: [away, root], protectedPaths: [own] };
    await (await openFile(join(root, 'a.mp4'), policy)).close();
    await refuses('SOURCE_OUTSIDE_ROOTS', join(folder, 'empty.mp4'), policy);
    const waiting = openFile(join(away, 'a.mp4'), policy);
    answer();
    await (await waiting).close();
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
});

describe('a local file that changes while it is read', () => {
  test('is refused when it grew, was rewritten, or was replaced', async () => {
    const path = join(folder, 'changing.mp4');
    const changes = [
      async () => {
        const { atime, mtime } = await stat(path);
        await appendFile(path, 'more');
        await utimes(path, atime, mtime);
      },
      async () => {
        await writeFile(path, 'BYTES');
        await utimes(path, 1, 1); // The clock of a file system ticks in milliseconds; this does not depend on it.
      },
      async () => {
        await writeFile(`${path}.new`, 'bytes');
        await rename(`${path}.new`, path);
      },
    ];
    for (const change of changes) {
      await writeFile(path, 'bytes');
      const source = await openFile(path);
      await source.checkUnchanged?.(never);
      await change();
      await rejectsWith('SOURCE_CHANGED', async () => source.checkUnchanged?.(never));
      await source.close();
    }
  });

  test('is an error where it became shorter, and none where it was only removed', async () => {
    const path = join(folder, 'shrinking.mp4');
    await writeFile(path, Buffer.alloc(100_000));
    const source = await openFile(path);
    await truncate(path, 50_000);
    await rejectsWith('SOURCE_ENDED_EARLY', () => readRange(source, 40_000, 20_000, never));
    await source.close();

    await writeFile(path, 'bytes');
    const removed = await openFile(path);
    await rm(path);
    assert.equal((await readRange(removed, 0, 5, never)).toString(), 'bytes');
    await removed.checkUnchanged?.(never);
    await removed.close();
  });

  test('says where a read failed', async () => {
    // Address 0 of a process is mapped nowhere, and reading it there is a true EIO.
    const file = Descriptor.open('/proc/self/mem', 'r');
    const size = { ...(await stat('/proc/self/mem', { bigint: true })), size: 4096n };
    const source = new FileSource(file, 'memory', '/proc/self/mem', size as never);
    await assert.rejects(readRange(source, 16, 16, never), (error) => {
      assert.ok(error instanceof AppError && error.reason === 'SOURCE_READ_FAILED');
      assert.equal((error.details as { offset: number }).offset, 16);
      return true;
    });
    await source.close();
  });
});

function openFile(path: string, policy = anywhere) {
  return openLocalFile(path, 'test.bin', policy, never);
}

async function refuses(reason: Reason, path: string, policy = anywhere): Promise<void> {
  await rejectsWith(reason, () => openFile(path, policy), path);
}

async function rejectsWith(reason: Reason, run: () => Promise<unknown>, what = ''): Promise<void> {
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof AppError, `${what}: ${error}`);
    assert.equal(error.reason, reason, what);
    return true;
  });
}
