import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeySync } from 'node:crypto';
import { once } from 'node:events';
import { linkSync } from 'node:fs';
import { appendFile, chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { stagedNameOf } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import type { FolderLimits } from '#inputs/input-opener.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import type { LocalInputPolicy } from '#inputs/local/local-file.ts';
import { localFolderOpener, openLocalFolder } from '#inputs/local/local-folder.ts';
import { sourceFolderContract } from '../bytes/source-folder-contract.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';

const never = new AbortController().signal;
const anywhere: LocalInputPolicy = { roots: undefined, protectedPaths: [] };
const roomy: FolderLimits = { maxFiles: 1000, maxBytes: 1024 ** 3, maxDepth: 3 };

let place: string;
/** The input folder, inside `place`. */
let root: string;

beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-local-folder-'));
  await chmod(place, 0o755);
  root = join(place, 'talk');
  await mkdir(root);
});
afterEach(() => rm(place, { recursive: true }));

sourceFolderContract('a local folder', async (files) => {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-folder-contract-'));
  for (const [path, bytes] of Object.entries(files)) await put(join(folder, path), bytes);
  return { folder: await openFolder(folder), cleanUp: () => rm(folder, { recursive: true }) };
});

describe('opening a local folder', () => {
  test('tells a missing folder, a file, an empty folder and the root of the file system apart', async () => {
    await put(join(place, 'file.mp4'));
    await mkdir(join(place, 'hollow', 'inner'), { recursive: true });
    await symlink('/', join(place, 'to-root'));
    await refuses('SOURCE_NOT_FOUND', join(place, 'missing'));
    await refuses('SOURCE_NOT_FOLDER', join(place, 'file.mp4'));
    await refuses('FOLDER_EMPTY', root);
    await refuses('FOLDER_EMPTY', join(place, 'hollow'));
    await refuses('FOLDER_IS_ROOT', '/');
    await refuses('FOLDER_IS_ROOT', join(place, 'to-root'));
    await refuses('SOURCE_PATH_INVALID', '');
    await refuses('SOURCE_PATH_INVALID', 'a\0b');
  });

  test('keeps names as they are on the disk, whatever their normal form, and both forms apart', async () => {
    const names = ['caf\u00e9.m4s', 'cafe\u0301.m4s'];
    for (const name of names) await put(join(root, name), name);
    const folder = await openFolder(root);
    assert.deepEqual(new Set(folder.files.map(({ path }) => path)), new Set(names));
    for (const name of names) assert.equal(await contentOf(folder.open(name, never)), name);
  });

  test('refuses a name that is not UTF-8, which could not be found again', async () => {
    await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), 'a');
    await refusesEntry('a\ufffd');
  });

  test('takes a folder through a link, and is named by the resolver', async () => {
    await put(join(root, 'a.mp4'));
    await symlink(root, join(place, 'link'));
    const resolver = new InputResolver({}, { local_folder_path: localFolderOpener(anywhere, roomy) });
    const folder = await resolver.openFolder({ type: 'local_folder_path', path: `${place}/link/` }, 0, {
      signal: never,
      scratch: new ScratchSpace({ dir: place, dataDir: place }, { jobId: 'job', inputIndex: 0, attempt: 1 }),
    });
    assert.equal(folder.name, 'link');
    const source = await folder.open('a.mp4', never);
    assert.equal(source.localPath, join(root, 'a.mp4'));
    await source.close();
  });

  test('passes over what this service is staging there', async () => {
    await put(join(root, 'a.mp4'));
    const staged = stagedNameOf(
      '/out/a',
      { jobId: 'job', inputIndex: 0, attempt: 1 },
      generateKeySync('hmac', { length: 256 }),
    );
    await put(join(root, staged, 'half.m4s'));
    await put(join(root, 'b', staged));
    const folder = await openFolder(root);
    assert.deepEqual(
      folder.files.map(({ path }) => path),
      ['a.mp4'],
    );
  });

  test('gives up when the signal was aborted', async () => {
    const reason = new Error('stopped by the test');
    await assert.rejects(openLocalFolder(root, 'talk', anywhere, roomy, AbortSignal.abort(reason)), reason);
  });

  test('names a folder that it may not enter', async () => {
    await put(join(root, 'closed', 'a.mp4'));
    await chmod(join(root, 'closed'), 0o000);
    try {
      await withoutPrivileges(() => refuses('SOURCE_NOT_PERMITTED', root));
    } finally {
      await chmod(join(root, 'closed'), 0o755);
    }
  });
});

describe('what is in a local folder', () => {
  test('is refused by name where it is a FIFO, a socket, or a link to one', async () => {
    execFileSync('mkfifo', [join(root, 'fifo')]);
    await refusesEntry('fifo');
    await rename(join(root, 'fifo'), join(place, 'fifo'));
    await symlink(join(root, 'inner', 'socket'), join(root, 'link'));

    await mkdir(join(root, 'inner'));
    const server = createServer().listen(join(root, 'inner', 'socket'));
    await once(server, 'listening');
    await refusesEntry('link');
    await rm(join(root, 'link'));
    await refusesEntry('inner/socket');
    server.close();
  });

  test('may be a link to a regular file inside, and to nothing else', async () => {
    await put(join(root, 'v', 'a.mp4'), 'inside');
    await put(join(place, 'outside.mp4'));
    await symlink('v/a.mp4', join(root, 'good.mp4'));
    const folder = await openFolder(root);
    assert.equal(await contentOf(folder.open('good.mp4', never)), 'inside');
    assert.equal(folder.files[0]?.sizeBytes, 6);

    for (const target of ['../outside.mp4', '/etc/passwd', 'v', '.', '..', 'missing.mp4', 'bad']) {
      await symlink(target, join(root, 'bad'));
      await refusesEntry('bad');
      await rm(join(root, 'bad'));
    }
  });

  test('is bounded in files, folders, bytes and depth, and may reach each bound', async () => {
    for (const name of ['a', 'b', 'x/c', 'y/d']) await put(join(root, name), '12345');
    const files = await openFolder(root, { maxFiles: 4, maxBytes: 20, maxDepth: 1 });
    assert.equal(files.files.length, 4);
    for (const bounds of [
      { ...roomy, maxFiles: 3 },
      { ...roomy, maxBytes: 19 },
      { ...roomy, maxDepth: 0 },
    ]) {
      await refuses('FOLDER_TOO_LARGE', root, anywhere, bounds);
    }
    for (const name of ['p', 'q', 'r']) await mkdir(join(root, name));
    await refuses('FOLDER_TOO_LARGE', root, anywhere, { ...roomy, maxFiles: 4 });
  });

  test('may be 20,000 files', async () => {
    const pathOf = (index: number) => join(root, 'v', `seg-${index}.m4s`);
    await put(pathOf(0), '');
    // Links are made several times as fast as files.
    for (let index = 1; index < 20_000; index += 1) linkSync(pathOf(0), pathOf(index));
    const folder = await openFolder(root, { ...roomy, maxFiles: 20_000 });
    assert.equal(folder.files.length, 20_000);
    await refuses('FOLDER_TOO_LARGE', root, anywhere, { ...roomy, maxFiles: 19_999 });
  });
});

describe('where local folders may be read from', () => {
  test('refuses the places of the system, and a folder that holds one', async () => {
    await refuses('SOURCE_IN_SYSTEM_PLACE', '/etc');
    await refuses('SOURCE_IN_SYSTEM_PLACE', '/proc/self/fd');
    await refuses('SOURCE_IN_SYSTEM_PLACE', '/root/.ssh');
    await refuses('SOURCE_IN_SYSTEM_PLACE', '/var', anywhere, { ...roomy, maxFiles: 1_000_000, maxDepth: 200 });
  });

  test('with roots, refuses everything else', async () => {
    await put(join(root, 'a.mp4'));
    await put(join(place, 'other', 'a.mp4'));
    const policy: LocalInputPolicy = { roots: [root], protectedPaths: [] };
    await refuses('SOURCE_OUTSIDE_ROOTS', join(place, 'other'), policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', place, policy);
    await refuses('SOURCE_OUTSIDE_ROOTS', join(place, 'missing'), policy);
    await openFolder(root, roomy, policy);
  });

  test('refuses a folder that holds data of the service, however deep', async () => {
    await put(join(root, 'a.mp4'));
    await put(join(root, 'v', 'data', 'jobs.sqlite'));
    await put(join(root, 'v', 'key.pem'));
    await refuses('SOURCE_PROTECTED', root, { roots: [place], protectedPaths: [join(root, 'v', 'data')] });
    await refuses('SOURCE_PROTECTED', root, { roots: [place], protectedPaths: [join(root, 'v', 'key.pem')] });
    await refuses('SOURCE_PROTECTED', root, { roots: [place], protectedPaths: [place] });
  });
});

describe('a local folder that changes after it was listed', () => {
  test('refuses a file that grew, was rewritten, replaced, removed, or swapped for a link', async () => {
    const path = join(root, 'a.mp4');
    const changes = [
      () => appendFile(path, 'more'),
      () => utimes(path, 1, 1), // As a rewrite would; the clock of a file system ticks in milliseconds.
      async () => {
        await writeFile(`${path}.new`, 'bytes');
        await utimes(`${path}.new`, 5, 5);
        await rename(`${path}.new`, path);
      },
      () => rm(path),
      async () => {
        await rename(path, join(place, 'moved.mp4'));
        await symlink(join(place, 'moved.mp4'), path);
      },
    ];
    for (const change of changes) {
      await rm(path, { force: true });
      await put(path, 'bytes');
      await utimes(path, 5, 5);
      const folder = await openFolder(root);
      await change();
      await assert.rejects(folder.open('a.mp4', never), AppError);
    }
  });

  test('never opens the file through a folder that was swapped for a link', async () => {
    await put(join(root, 'v', 'a.mp4'), 'bytes');
    const folder = await openFolder(root);
    await rename(join(root, 'v'), join(place, 'v'));
    await symlink(join(place, 'v'), join(root, 'v'));
    await rejectsWith('SOURCE_CHANGED', () => folder.open('v/a.mp4', never));
  });
});

async function put(path: string, content: string | Uint8Array = 'content'): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

function openFolder(path: string, bounds = roomy, policy = anywhere) {
  return openLocalFolder(path, 'talk', policy, bounds, never);
}

async function contentOf(opening: ReturnType<Awaited<ReturnType<typeof openFolder>>['open']>): Promise<string> {
  const source = await opening;
  try {
    return (await readRange(source, 0, source.sizeBytes, never)).toString();
  } finally {
    await source.close();
  }
}

async function refuses(reason: Reason, path: string, policy = anywhere, bounds = roomy): Promise<void> {
  await rejectsWith(reason, () => openFolder(path, bounds, policy), path);
}

async function refusesEntry(entry: string): Promise<void> {
  await assert.rejects(openFolder(root), (error) => {
    assert.ok(error instanceof AppError && error.reason === 'FOLDER_ENTRY_REFUSED', String(error));
    assert.equal((error.details as { entry: string }).entry, entry);
    return true;
  });
}

async function rejectsWith(reason: Reason, run: () => Promise<unknown>, what = ''): Promise<void> {
  await assert.rejects(run, (error) => {
    assert.ok(error instanceof AppError, `${what}: ${error}`);
    assert.equal(error.reason, reason, what);
    return true;
  });
}
