import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';

/** Folder under test with the given files, and its clean-up. */
export interface OpenedFolder {
  readonly folder: SourceFolder;
  cleanUp(): Promise<void>;
}

/** Files by path: names that sort differently for people and machines, spaces, accents, the same name in two folders. */
const FILES: Readonly<Record<string, Buffer>> = {
  'master.m3u8': Buffer.from('#EXTM3U\n'),
  'a/seg-10.m4s': Buffer.alloc(100_000, 10),
  'a/seg-2.m4s': Buffer.from('two'),
  'a/b/seg-2.m4s': Buffer.from('another two'),
  'a b/éclair #1%20.m4s': Buffer.from('accents'),
  'a.mp4': Buffer.from('a'),
  'empty.vtt': Buffer.alloc(0),
};

const never = new AbortController().signal;

/** The obligations of every `SourceFolder`. `open` makes a folder that holds exactly the given files. */
export function sourceFolderContract(
  what: string,
  open: (files: Readonly<Record<string, Buffer>>) => Promise<OpenedFolder>,
): void {
  const withFolder = async (use: (folder: SourceFolder) => Promise<void>) => {
    const { folder, cleanUp } = await open(FILES);
    try {
      await use(folder);
    } finally {
      await cleanUp();
    }
  };

  describe(`${what} as a source folder`, () => {
    test('lists every file once with its size, in the order of the paths', () =>
      withFolder(async (folder) => {
        const expected = Object.entries(FILES).map(([path, { length }]) => ({ path, sizeBytes: length }));
        assert.deepEqual(
          folder.files.map(({ path, sizeBytes }) => ({ path, sizeBytes })),
          expected.sort((first, second) => (first.path < second.path ? -1 : 1)),
        );
      }));

    test('has a name of one segment', () =>
      withFolder(async ({ name }) => {
        assert.notEqual(name, '');
        assert.doesNotMatch(name, /[/\\\p{Cc}]/u);
      }));

    test('has a base URL that ends in a slash, where it has one', () =>
      withFolder(async ({ baseUrl }) => {
        if (baseUrl !== undefined) assert.ok(baseUrl.endsWith('/') && URL.canParse(baseUrl));
      }));

    test('opens every file, concurrently and again', () =>
      withFolder(async (folder) => {
        const paths = [...Object.keys(FILES), ...Object.keys(FILES)];
        await Promise.all(
          paths.map(async (path) => {
            const source = await folder.open(path, never);
            const bytes = await readRange(source, 0, source.sizeBytes, never);
            assert.ok(bytes.equals(FILES[path] as Buffer), path);
            assert.doesNotMatch(source.name, /^$|[/\\\p{Cc}]/u);
            await source.checkUnchanged?.(never);
            await source.close();
          }),
        );
      }));

    test('opens nothing that it does not list', () =>
      withFolder(async (folder) => {
        for (const path of ['seg-2.m4s', 'a', 'a/', './a.mp4', '../a.mp4', '/a.mp4', 'a/../a.mp4', '']) {
          await assert.rejects(folder.open(path, never), path);
        }
      }));

    test('rejects with the reason of an aborted signal, and serves others on', () =>
      withFolder(async (folder) => {
        const reason = new Error('stopped by the test');
        await assert.rejects(folder.open('a.mp4', AbortSignal.abort(reason)), reason);
        await (await folder.open('a.mp4', never)).close();
      }));
  });
}
