import { AppError } from '#errors/app-error.ts';
import type { MediaLayout } from '#formats/format-handler.ts';
import { AUDIO_ONLY_EXTENSIONS } from './media-extensions.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import { signFile } from './sign-file.ts';

/** Signs one video file. An MP4 that holds audio only is taken too; MP3, WAV and FLAC belong to the audio operation. */
export function signVideoFile(work: InputWork, context: InputContext, rooms: OperationRooms): Promise<InputOutcome> {
  return signFile(work, context, rooms, refuseAudioContainer);
}

function refuseAudioContainer(name: string, layout: MediaLayout): void {
  if (layout.extensions.some((extension) => AUDIO_ONLY_EXTENSIONS.has(extension))) {
    throw new AppError('VIDEO_IS_AUDIO_FILE', { name, mediaType: layout.mediaType });
  }
}
