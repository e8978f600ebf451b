import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { type PublicationFolder, publicationFolder } from '#publications/publication-folder.ts';

/** A folder held in memory, by path. Strings become UTF-8. */
export function folderOf(files: Readonly<Record<string, string | Uint8Array>>, baseUrl?: string): PublicationFolder {
  const contents = new Map(Object.entries(files).map(([path, content]) => [path, Buffer.from(content as string)]));
  return publicationFolder({
    name: 'folder',
    ...(baseUrl === undefined ? {} : { baseUrl }),
    files: [...contents].map(([path, bytes]) => ({ path, sizeBytes: bytes.length })),
    open: async (path) => sourceOf(path, contents.get(path)),
  });
}

/** Everything under a directory of this host, as a folder in memory. */
export function folderAt(directory: string): PublicationFolder {
  return folderOf(filesAt(directory));
}

/** Everything under a directory of this host, by path relative to it. */
export function filesAt(directory: string): Record<string, Uint8Array> {
  const files: Record<string, Uint8Array> = {};
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files[relative(directory, path)] = readFileSync(path);
  }
  return files;
}

/** Writes files below a directory of this host. */
export function writeFiles(directory: string, files: Readonly<Record<string, string | Uint8Array>>): string {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), content);
  }
  return directory;
}

function sourceOf(path: string, bytes: Buffer | undefined): ByteSource {
  if (bytes === undefined) throw new Error(`${path} is not in the folder`);
  return {
    name: path.slice(path.lastIndexOf('/') + 1),
    sizeBytes: bytes.length,
    read: async (target, offset) => {
      if (offset + target.length > bytes.length) throw new RangeError(`${path} ends before ${offset + target.length}`);
      target.set(bytes.subarray(offset, offset + target.length));
    },
    close: () => Promise.resolve(),
  };
}
