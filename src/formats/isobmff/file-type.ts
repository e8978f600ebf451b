import type { ReadWindow } from '../read-window.ts';
import { BOX_HEADER_SIZE_BYTES, Box } from './box.ts';
import { BoxFields } from './box-fields.ts';
import type { FileBox } from './file-boxes.ts';
import type { FileType } from './layout.ts';
import { readWholeBox } from './whole-box.ts';

/** For files from before there was one: QuickTime, version 0, compatible with itself. */
const QUICKTIME_FILE_TYPE = Buffer.from('0000001466747970717420200000000071742020', 'hex');
const LARGEST_FILE_TYPE_BYTES = 64 * 1024;

/** Reads the `ftyp` box, or makes one. */
export async function readFileType(name: string, window: ReadWindow, boxes: readonly FileBox[]): Promise<FileType> {
  const box = boxes.find(({ type }) => type === 'ftyp');
  if (box === undefined) return { bytes: QUICKTIME_FILE_TYPE, box: null };
  const { bytes } = await readWholeBox(name, window, box, LARGEST_FILE_TYPE_BYTES);
  return { bytes: Buffer.from(bytes), box };
}

/** The major brand (ISO/IEC 14496-12 §4.3); null where the file does not say. */
export function majorBrandOf(fileName: string, { bytes, box }: FileType): string | null {
  if (box === null || bytes.length < BOX_HEADER_SIZE_BYTES + 4) return null;
  return new BoxFields(new Box(fileName, box, bytes)).text(4);
}
