import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { linksToOtherFiles } from '#formats/matroska-links.ts';
import { mediaFolder } from '../support/judges/file-judges.ts';
import { ebml, LINKED_CHAPTERS, matroska } from '../support/media/ebml-bytes.ts';
import { ffmpeg } from '../support/media/media-files.ts';
import { u64 } from '../support/media/movie-bytes.ts';
import { memorySource } from '../support/memory-bytes.ts';

const { signal } = new AbortController();
const isLinked = (bytes: Uint8Array): Promise<boolean> => linksToOtherFiles(memorySource(bytes), signal);
const ID = Buffer.alloc(16, 1);
const CLUSTER = ebml('1f43b675', ebml('e7', Buffer.from([0])));

describe('Matroska links to other files', () => {
  for (const id of ['3cb923', '3eb923', '3c83ab', '3e83bb']) {
    test(`by element ${id} of its information`, async () => {
      assert.ok(await isLinked(matroska(ebml('1549a966', ebml('73a4', ID), ebml(id, ID)), CLUSTER)));
    });
  }

  test('by chapters before its media, and behind where the index leads', async () => {
    assert.ok(await isLinked(matroska(LINKED_CHAPTERS, CLUSTER)));
    const withIndex = (position: number): Buffer => {
      const entry = ebml('4dbb', ebml('53ab', Buffer.from('1043a770', 'hex')), ebml('53ac', u64(position)));
      return ebml('114d9b74', entry);
    };
    assert.equal(await isLinked(matroska(CLUSTER, LINKED_CHAPTERS)), false);
    const position = withIndex(0).length + CLUSTER.length;
    assert.ok(await isLinked(matroska(withIndex(position), CLUSTER, LINKED_CHAPTERS)));
  });

  test('but not by its own chapters, nor if it is something else', async () => {
    const folder = mediaFolder();
    const chapter = '[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=500\ntitle=Opening\n';
    writeFileSync(join(folder, 'chapters.txt'), `;FFMETADATA1\n${chapter}`);
    const film = ['-f', 'lavfi', '-i', 'testsrc=size=64x64:rate=10:duration=1', '-i', join(folder, 'chapters.txt')];
    assert.equal(await isLinked(ffmpeg(folder, 'film.mkv', ...film)), false);
    assert.equal(await isLinked(LINKED_CHAPTERS), false);
  });

  test('or not, in bounded time, whatever its bytes', async () => {
    const whole = matroska(LINKED_CHAPTERS, CLUSTER);
    const damaged = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 9 }).map((changes) => {
      const copy = Buffer.from(whole);
      for (const [at, value] of changes) copy[at] = value;
      return copy;
    });
    await fc.assert(fc.asyncProperty(damaged, async (bytes) => void (await isLinked(bytes))));
    const loop = ebml('4dbb', ebml('53ac', u64(0)));
    assert.equal(await isLinked(matroska(ebml('114d9b74', ...Array<Buffer>(99).fill(loop)))), false);
  });
});
