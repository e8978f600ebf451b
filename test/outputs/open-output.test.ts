import assert from 'node:assert/strict';
import { once } from 'node:events';
import { linkSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { listOutput, MAX_LISTED_FILES, openOutput } from '#outputs/open-output.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const settings = { local: { base_dir: folder } };
const never = new AbortController().signal;

function publicationOf(name: string, paths: readonly string[]): string {
  const outputPath = join(folder, name);
  for (const above of new Set(paths.map(dirname))) mkdirSync(join(outputPath, above), { recursive: true });
  const [first = '', ...others] = paths.map((path) => join(outputPath, path));
  writeFileSync(first, 'x');
  // Links are made several times as fast as files.
  for (const other of others) linkSync(first, other);
  return outputPath;
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => `${String(index).padStart(5, '0')}.m4s`);

describe('the files of an output', () => {
  test('are listed in the order of their paths, folders between files', async () => {
    const paths = ['a.mp4', 'a/1.m4s', 'a/b/2.m4s', 'a0.mp4', 'b/1.m4s'];
    const { files, more } = await listOutput(publicationOf('order', paths.toReversed()), settings, never);
    assert.deepEqual([files.map(({ path }) => path), more], [paths, false]);
  });

  test('are the first of them where there are too many', async () => {
    const paths = numbered(MAX_LISTED_FILES + 100);
    const { files, more } = await listOutput(publicationOf('many', paths.toReversed()), settings, never);
    assert.deepEqual(
      files.map(({ path }) => path),
      paths.slice(0, MAX_LISTED_FILES),
    );
    assert.equal(more, true);
  });

  test('are listed while they are removed', async () => {
    const outputPath = publicationOf('removed', numbered(300));
    const listing = listOutput(outputPath, settings, never);
    for (const name of numbered(300)) {
      rmSync(join(outputPath, name));
      await new Promise(setImmediate);
    }
    assert.ok((await listing).files.length <= 300);
  });
});

/** Tells whether this process has a file open. */
function isOpen(path: string): boolean {
  const links = readdirSync('/proc/self/fd').map((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`);
    } catch {
      return ''; // The descriptor of the listing itself.
    }
  });
  return links.includes(path);
}

test('an output is closed with its stream, also where its client is gone before the first byte is read', async () => {
  const outputPath = join(publicationOf('abandoned', ['film.mp4']), 'film.mp4');
  const output = await openOutput({ outputPath, segments: [] }, settings, never);
  assert(output !== null);
  const stream = output.read(0, output.sizeBytes);
  assert(isOpen(outputPath));
  stream.destroy();
  await once(stream, 'close');
  await until(() => !isOpen(outputPath));
});

test('an output in S3 is not called unknown where this node has no S3', async () => {
  const outputPath = 's3://bucket/film.mp4';
  const file = { outputPath, segments: [] };
  await assert.rejects(openOutput(file, settings, never), { reason: 'OUTPUT_STORE_UNKNOWN' });
  await assert.rejects(listOutput(outputPath, settings, never), { reason: 'OUTPUT_STORE_UNKNOWN' });
});
