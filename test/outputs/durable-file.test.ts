import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { allocatePages, PAGE_SIZE_BYTES } from '#bytes/buffers.ts';
import { DurableFile } from '#outputs/local/durable-file.ts';
import { openSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { cachedBytes, makeDirectFolder } from './page-cache.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const never = new AbortController().signal;

let folder: string;
let written = 0;

beforeEach(async () => {
  folder = await makeDirectFolder();
});
afterEach(() => rm(folder, { recursive: true }));

/** Random bytes in memory that can be written directly, `offset` bytes into a page. */
function pagesOf(sizeBytes: number, offset = 0): Buffer {
  const bytes = allocatePages(offset + sizeBytes).subarray(offset);
  randomBytes(sizeBytes).copy(bytes);
  return bytes;
}

/** Writes a file of these pieces, one after the other in it, all at once; returns its path. */
async function writeFileOf(place: string, pieces: readonly Buffer[], isCached: boolean): Promise<string> {
  const path = join(place, `file-${written++}`);
  const file = DurableFile.create(path, { isCached });
  try {
    let position = 0;
    const writes = pieces.map((piece) => {
      const at = position;
      position += piece.length;
      return file.write(piece, at, never);
    });
    await Promise.all(writes);
    await file.sync();
    assert.equal(file.sizeBytes, position);
  } finally {
    await file.close();
  }
  return path;
}

describe('a durable file', () => {
  test('goes around the page cache, but for the ends that fill no page', async () => {
    const pieces = [pagesOf(8 * MIB), pagesOf(100_001)];
    const path = await writeFileOf(folder, pieces, false);
    const cached = cachedBytes(path);
    assert.ok(readFileSync(path).equals(Buffer.concat(pieces)));
    assert.ok(cached <= 64 * KIB, `${cached} bytes are cached`);
  });

  test('goes through it where it is to be cached, and where memory or place fit no page', async () => {
    const sizeBytes = MIB;
    assert.equal(cachedBytes(await writeFileOf(folder, [pagesOf(sizeBytes)], true)), sizeBytes);
    assert.equal(cachedBytes(await writeFileOf(folder, [randomBytes(sizeBytes)], false)), sizeBytes);
    assert.equal(cachedBytes(await writeFileOf(folder, [pagesOf(sizeBytes, 8)], false)), sizeBytes);
  });

  test('goes around it from the next page on where memory and place lie alike on theirs', async () => {
    const pieces = [pagesOf(1000), pagesOf(MIB, 1000)];
    const path = await writeFileOf(folder, pieces, false);
    assert.ok(cachedBytes(path) <= 2 * 64 * KIB);
    assert.ok(readFileSync(path).equals(Buffer.concat(pieces)));
  });

  test('holds the same bytes wherever they lie in memory, and however they are cut', async () => {
    const offset = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: PAGE_SIZE_BYTES }));
    const sizeBytes = fc.oneof(
      fc.integer({ min: 0, max: 3 * PAGE_SIZE_BYTES }),
      fc.integer({ min: 1, max: 80 }).map((pages) => pages * PAGE_SIZE_BYTES),
      fc.integer({ min: 0, max: 400_000 }),
    );
    const piece = fc.record({ sizeBytes, offset, isCongruent: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (shapes) => {
        let position = 0;
        const pieces = shapes.map((shape) => {
          const at = shape.isCongruent ? position % PAGE_SIZE_BYTES : shape.offset;
          position += shape.sizeBytes;
          return pagesOf(shape.sizeBytes, at);
        });
        assert.ok(readFileSync(await writeFileOf(folder, pieces, false)).equals(Buffer.concat(pieces)));
      }),
      { numRuns: 60 },
    );
  });

  test('is given up with the reason of the signal', async () => {
    const file = DurableFile.create(join(folder, 'file'), { isCached: false });
    try {
      await assert.rejects(file.write(pagesOf(MIB), 0, AbortSignal.abort(new Error('enough'))), /enough/);
    } finally {
      await file.close();
    }
  });
});

describe('a durable file where nothing is written directly', () => {
  let disk: SmallDisk;

  before(async () => {
    disk = await openSmallDisk(4 * MIB);
  });
  after(() => disk.cleanUp());

  test('goes through the page cache', async () => {
    const pieces = [pagesOf(2 * MIB), pagesOf(5)];
    const path = await writeFileOf(disk.path, pieces, false);
    assert.ok(readFileSync(path).equals(Buffer.concat(pieces)));
    await rm(path);
  });

  test('tells that the disk is full', async () => {
    await assert.rejects(writeFileOf(disk.path, [pagesOf(5 * MIB)], false), { code: 'ENOSPC' });
  });
});
