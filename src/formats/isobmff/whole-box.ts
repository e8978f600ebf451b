import { AppError } from '#errors/app-error.ts';
import type { ReadWindow } from '../read-window.ts';
import { Box, type BoxHeader, shownType } from './box.ts';

/** Reads a box into memory. Refuses a larger one before it reads. The bytes are valid until the window is read again. */
export async function readWholeBox(
  name: string,
  window: ReadWindow,
  header: BoxHeader,
  maxSizeBytes: number,
): Promise<Box> {
  const { type, offset, sizeBytes } = header;
  if (sizeBytes > maxSizeBytes) {
    throw new AppError('BMFF_BOX_TOO_LARGE', { name, boxType: shownType(type), offset, sizeBytes, maxSizeBytes });
  }
  return new Box(name, header, await window.read(offset, sizeBytes));
}
