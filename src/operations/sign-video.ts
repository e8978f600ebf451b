import { c2paVideoRequest } from '#contract/c2pa-media-requests.ts';
import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { AUDIO_ONLY_EXTENSIONS } from '#formats/formats.ts';
import type { InputOutcome, Operation } from './operation.ts';
import { signFile } from './sign-file.ts';
import { validateFileSigning } from './validation/validate-file-signing.ts';

/** Signs video files. An MP4 that holds audio only is taken too; MP3, WAV and FLAC belong to the audio operation. */
export const signVideo: Operation<InputOutcome> = {
  name: 'c2pa-video',
  path: '/c2pa/video',
  summary: 'Sign video files',
  request: c2paVideoRequest,
  validateRequest: (request, context) => validateFileSigning(request, refusalOfExtension, context),
  run: (work, context, services) => signFile(work, context, services, refuseAudioContainer),
};

function refusalOfExtension(extension: string): string | null {
  return AUDIO_ONLY_EXTENSIONS.has(extension) ? `".${extension}" is audio. Use the audio endpoint` : null;
}

function refuseAudioContainer(name: string, layout: MediaLayout): void {
  if (layout.extensions.some((extension) => AUDIO_ONLY_EXTENSIONS.has(extension))) {
    throw new AppError('VIDEO_IS_AUDIO_FILE', { name, mediaType: layout.mediaType });
  }
}
