import type { MediaLayout } from '../format-handler.ts';
import type { FileBox, FileBoxes } from './file-boxes.ts';
import type { StoredOffsets } from './stored-offsets.ts';

/** An ISO BMFF or QuickTime file as the plan needs it. */
export interface IsobmffLayout extends MediaLayout, FileBoxes {
  readonly name: string;
  readonly sizeBytes: number;
  readonly fileType: FileType;
  /** The part of the file, from the first fragment or segment index to the last, whose boxes count on their distances. */
  readonly rigid: { readonly start: number; readonly end: number } | null;
  readonly offsets: StoredOffsets;
}

/** The `ftyp` box, which readers of C2PA want at the very start of the file. */
export interface FileType {
  readonly bytes: Buffer;
  /** Null where the file has none and the bytes are ours. */
  readonly box: FileBox | null;
}
