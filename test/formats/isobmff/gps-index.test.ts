import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { assemble, box, FTYP, find, trak, u32 } from '../../support/media/movie-bytes.ts';
import { embed } from '../../support/memory-bytes.ts';

async function signed(movie: Buffer): Promise<Buffer> {
  return (await embed(isobmff, movie, Buffer.alloc(100))).output;
}

describe('positions that a dashcam recorded', () => {
  const POSITION = box('free', Buffer.from('GPS 52.5N13.4E'));
  const index = (count: number, ...numbers: number[]) => box('gps ', u32(0x101, count, ...numbers));
  const movie = (indexOf: (offset: number) => Buffer) =>
    assemble(FTYP, box('mdat', Buffer.alloc(20)), POSITION, ([, , position = 0]) =>
      box('moov', trak(), indexOf(position)),
    );
  const gpsIn = (output: Buffer) => find(output, 'moov', 'gps ').bytes;

  test('are found again', async () => {
    const output = await signed(movie((offset) => index(2, offset, POSITION.length, offset, 4)));
    for (const entry of [16, 24]) {
      const offset = gpsIn(output).readUInt32BE(entry);
      assert.deepEqual(output.subarray(offset, offset + POSITION.length), POSITION);
    }
  });

  test('are no concern where the box is no such list', async () => {
    for (const other of [
      index(3, 60, 4),
      index(1, 60, 2 ** 31),
      index(0),
      box('gps ', Buffer.alloc(3)),
      index(2 ** 31, 1, 1),
    ])
      assert.deepEqual(gpsIn(await signed(movie(() => other))), other);
  });
});
