import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { FolderSink } from '#outputs/output-sink.ts';

/** Contents by path. */
export type Files = Readonly<Record<string, string>>;

const never = new AbortController().signal;

/** Writes files into a folder that is being staged, side by side, and seals it. */
export async function fill(sink: FolderSink, files: Files): Promise<FolderSink> {
  await Promise.all(
    Object.entries(files).map(async ([path, content]) => {
      const part = await sink.create(path, never);
      await part.write(Buffer.from(content), 0, never);
      await part.close();
    }),
  );
  await sink.seal(never);
  return sink;
}

/** Everything in a folder by path, empty folders with a slash at the end; null where there is no folder. */
export async function filesIn(folder: string): Promise<Files | null> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => null);
  if (entries === null) return null;
  const files: Record<string, string> = {};
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = relative(folder, path);
    if (entry.isFile()) files[name] = await readFile(path, 'utf8');
    else if (!entry.isDirectory()) files[name] = 'no file';
    else if ((await readdir(path)).length === 0) files[`${name}/`] = '';
  }
  return files;
}

/** Writes files to the disk as anybody else would. */
export async function putFiles(folder: string, files: Files): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** Two publications that share names, folders and nothing else. */
export const OLD: Files = {
  'master.m3u8': 'old master',
  'v/720/init.mp4': 'old init',
  'v/720/1.m4s': 'old fragment 1',
  'v/720/9.m4s': 'old fragment 9',
  'gone/a.vtt': 'old text',
};
export const NEW: Files = {
  'master.m3u8': 'new master',
  'v/720/init.mp4': 'new init',
  'v/720/1.m4s': 'new fragment 1',
  'v/720/2.m4s': 'new fragment 2',
  'v/720/index.m3u8': 'new playlist',
  'v/1080/init.mp4': 'new second init',
  'empty.vtt': '',
};
