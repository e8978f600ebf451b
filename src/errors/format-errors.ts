import { entry } from './entry.ts';

/** What can be wrong with the bytes of a media file. Offsets and sizes are in bytes, offsets from the file's start. */
export const formatErrors = {
  FORMAT_UNKNOWN: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) =>
      `"${name}" is none of the containers that can carry a manifest here (MP4, MOV, M4V, M4A, 3GP, WAV, MP3, FLAC). Convert it to one of them.`,
  ),
};
