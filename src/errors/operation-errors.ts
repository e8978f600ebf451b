import { entry } from './entry.ts';

/** What an operation refuses once an input's bytes have told what it is. */
export const operationErrors = {
  AUDIO_HAS_VIDEO: entry<{ name: string }>(
    'INVALID_INPUT_TYPE',
    ({ name }) => `"${name}" holds a video track. The audio endpoint signs audio alone: use the video endpoint.`,
  ),
  AUDIO_CONTAINER_UNSUPPORTED: entry<{ name: string; mediaType: string }>(
    'INVALID_INPUT_TYPE',
    ({ name, mediaType }) =>
      `"${name}" is ${mediaType}. The audio endpoint signs MP3, WAV, FLAC, M4A, and MP4 or M4V without video: convert it, or use the video endpoint.`,
  ),
  VIDEO_IS_AUDIO_FILE: entry<{ name: string; mediaType: string }>(
    'INVALID_INPUT_TYPE',
    ({ name, mediaType }) => `"${name}" is ${mediaType}, which never holds video: use the audio endpoint.`,
  ),
  READ_BACK_TIMED_OUT: entry<{ boundMs: number }>(
    'INTERNAL_ERROR',
    ({ boundMs }) =>
      `The official reader did not finish checking the output within ${Math.round(boundMs / 1000)} s, so it was not delivered. Submit the input again; if that repeats, look at the disk.`,
    { transient: true },
  ),
};
