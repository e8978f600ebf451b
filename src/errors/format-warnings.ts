import { warningEntry } from './entry.ts';

/** What to know of a media file that was signed as it is, or nearly so. */
export const formatWarnings = {
  MEDIA_SIZE_CORRECTED: warningEntry<{ name: string; offset: number; statedBytes: number; sizeBytes: number }>(
    ({ name, offset, statedBytes, sizeBytes }) =>
      `The last "mdat" box of "${name}", at byte ${offset}, claims ${statedBytes} bytes, but the file has ${sizeBytes} of them. The output has the size corrected; its last sample may lack its end.`,
  ),
  MEDIA_IN_OTHER_FILES: warningEntry<{ name: string; trackCount: number }>(
    ({ name, trackCount }) =>
      `"${name}" refers to media in other files (${trackCount} of its tracks). These files are not signed, and a change in them is not found. Make the movie self-contained to sign its media.`,
  ),
};
