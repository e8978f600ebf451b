import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { AUDIO_EXTENSIONS } from './media-extensions.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import { signFile } from './sign-file.ts';

/** Signs one audio file: MP3, WAV, FLAC, or an MP4 without a video track. */
export function signAudioFile(work: InputWork, context: InputContext, rooms: OperationRooms): Promise<InputOutcome> {
  return signFile(work, context, rooms, refuseVideo);
}

function refuseVideo(name: string, layout: MediaLayout): void {
  if (layout.hasVideo) throw new AppError('AUDIO_HAS_VIDEO', { name });
  if (!layout.extensions.some((extension) => AUDIO_EXTENSIONS.has(extension))) {
    throw new AppError('AUDIO_CONTAINER_UNSUPPORTED', { name, mediaType: layout.mediaType });
  }
}
