import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partBoundaries } from '#formats/part-boundaries.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { SeededRandom } from '../support/seeded-random.ts';

const { signal } = new AbortController();
const BEGINNINGS: Readonly<Record<string, string>> = {
  'image/png': '89504e470d0a1a0a0000000049484452000000000000000049454e44',
  'image/jpeg': 'ffd8ffe00004ffffffda0002ffd9',
  'image/gif': '4749463839610100010080000000000000ffffff21fe0241420021f9000000002c0000000001000100000202440100',
  'image/jxl': '0000000c4a584c200d0a870a00000008667479700000000a6a786c63ff0a',
};

test('the ends of parts ascend, and are found in any bytes', async () => {
  const random = new SeededRandom(3);
  for (const [mediaType, beginning] of Object.entries(BEGINNINGS)) {
    for (let round = 0; round < 500; round += 1) {
      const bytes = Buffer.from(beginning, 'hex').subarray(0, random.between(0, beginning.length / 2));
      const at = random.between(0, Math.max(bytes.length - 1, 0));
      if (bytes.length > 0) bytes.writeUInt8(random.between(0, 255), at);
      const ends: number[] = [];
      const boundaries = partBoundaries(memorySource(bytes), mediaType, signal);
      assert.ok(boundaries !== null);
      for await (const end of boundaries) ends.push(end);
      assert.deepEqual(
        ends,
        ends.toSorted((one, other) => one - other),
        bytes.toString('hex'),
      );
    }
  }
});

test('of other formats no ends of parts are known', () => {
  assert.equal(partBoundaries(memorySource(Buffer.alloc(8)), 'image/tiff', signal), null);
});
