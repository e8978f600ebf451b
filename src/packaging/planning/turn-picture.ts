import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { Box } from '#formats/isobmff/box.ts';
import { BoxFields } from '#formats/isobmff/box-fields.ts';

/** One, in the 16.16 fixed point of matrices; the last of their numbers has 2.30 (ISO/IEC 14496-12 §6.2.2). */
const ONE = 0x10000;
const LAST = 0x40000000;

/** Matrices that turn a picture clockwise, by degrees: `a b u c d v x y w`, without the shift back that nobody heeds. */
const MATRICES: Readonly<Record<number, readonly number[]>> = {
  90: [0, ONE, 0, -ONE, 0, 0, 0, 0, LAST],
  180: [-ONE, 0, 0, 0, -ONE, 0, 0, 0, LAST],
  270: [0, -ONE, 0, ONE, 0, 0, 0, 0, LAST],
};

/**
 * Writes into an init segment how its picture is to be turned, in the track header (ISO/IEC 14496-12 §8.3.2): the packager
 * does not carry that over. `degrees` is a multiple of 90, clockwise.
 */
export async function turnPicture(initPath: string, degrees: number): Promise<void> {
  const matrix = MATRICES[degrees];
  assert(matrix !== undefined, 'pictures are turned by quarters');
  const bytes = await readFile(initPath);
  const header = { type: 'file', offset: 0, sizeBytes: bytes.length, headerSizeBytes: 0, sizeForm: 'compact' } as const;
  for (const tkhd of new Box(initPath, header, bytes).descendants('moov', 'trak', 'tkhd')) {
    const { version } = new BoxFields(tkhd).versionAndFlags();
    // Times, number and length of the track are wider in version 1; layer, group and volume follow.
    const at = tkhd.header.headerSizeBytes + 4 + (version === 1 ? 32 : 20) + 16;
    for (const [index, value] of matrix.entries()) tkhd.bytes.writeInt32BE(value, at + 4 * index);
  }
  await writeFile(initPath, bytes);
}
