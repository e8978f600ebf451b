import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';

/** Top-level boxes that are passed while looking for the first moov or moof. */
const BOXES_PASSED_MAX = 64;

/** Whether a file's first moov or moof is a moov, so that it is an init segment whatever its name. */
export async function startsWithInit(folder: SourceFolder, path: string, signal: AbortSignal): Promise<boolean> {
  const source = await folder.open(path, signal);
  try {
    let offset = 0;
    for (let passed = 0; passed < BOXES_PASSED_MAX && offset + 16 <= source.sizeBytes; passed += 1) {
      const header = await readRange(source, offset, 16, signal);
      const type = header.toString('latin1', 4, 8);
      if (type === 'moov' || type === 'moof') return type === 'moov';
      const compact = header.readUInt32BE(0);
      const length = compact === 1 ? Number(header.readBigUInt64BE(8)) : compact;
      if (length < 8) return false;
      offset += length;
    }
    return false;
  } finally {
    await source.close();
  }
}
