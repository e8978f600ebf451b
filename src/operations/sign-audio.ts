import { c2paAudioRequest } from '#contract/c2pa-media-requests.ts';
import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { AUDIO_EXTENSIONS, VIDEO_EXTENSIONS } from '#formats/formats.ts';
import type { InputOutcome, Operation } from './operation.ts';
import { signFile } from './sign-file.ts';
import { validateFileSigning } from './validation/validate-file-signing.ts';

/** Extensions that the audio operation signs, for messages. */
const SIGNED_EXTENSIONS = [...AUDIO_EXTENSIONS].join(', ');

/** Signs audio files: MP3, WAV, FLAC, or an MP4 without a video track. */
export const signAudio: Operation<InputOutcome> = {
  name: 'c2pa-audio',
  path: '/c2pa/audio',
  summary: 'Sign audio files',
  request: c2paAudioRequest,
  validateRequest: (request, context) => validateFileSigning(request, refusalOfExtension, context),
  run: (work, context, services) => signFile(work, context, services, refuseVideo),
};

function refusalOfExtension(extension: string): string | null {
  if (!VIDEO_EXTENSIONS.has(extension)) return null;
  return `the audio endpoint signs ${SIGNED_EXTENSIONS}. Use the video endpoint for ".${extension}"`;
}

function refuseVideo(name: string, layout: MediaLayout): void {
  if (layout.hasVideo) throw new AppError('AUDIO_HAS_VIDEO', { name });
  if (!layout.extensions.some((extension) => AUDIO_EXTENSIONS.has(extension))) {
    const { mediaType } = layout;
    throw new AppError('AUDIO_CONTAINER_UNSUPPORTED', { name, mediaType, extensions: SIGNED_EXTENSIONS });
  }
}
