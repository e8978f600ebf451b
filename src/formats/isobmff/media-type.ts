import type { MediaLayout } from '../format-handler.ts';
import type { TrackKinds } from './tracks.ts';

type Kind = Pick<MediaLayout, 'mediaType' | 'extensions'>;

const QUICKTIME: Kind = { mediaType: 'video/quicktime', extensions: ['mov', 'qt'] };
const VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['mp4', 'm4v', 'mp4v', 'f4v', 'cmfv', 'ismv'] };
const APPLE_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['m4v', 'mp4'] };
const AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['m4a', 'mp4', 'm4v', 'm4b', 'm4r', 'f4a', 'cmfa', 'isma'] };
// Readers of C2PA know 3GPP files as MP4, of which they are a profile, and by no name of their own.
const MOBILE_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['3gp', '3gpp', 'mp4'] };
const MOBILE_AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['3gp', '3gpp', 'mp4', 'm4a'] };
const MOBILE_2_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['3g2', '3gp2', '3gpp2', 'mp4'] };
const MOBILE_2_AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['3g2', '3gp2', '3gpp2', 'mp4', 'm4a'] };

/** What a file is, from the major brand of its `ftyp` box (null without one, as in old QuickTime) and its tracks. */
export function kindOf(majorBrand: string | null, { hasVideo, hasAudio }: TrackKinds): Kind {
  const isAudio = hasAudio && !hasVideo;
  if (majorBrand === null || majorBrand === 'qt  ') return QUICKTIME;
  if (/^3g2/.test(majorBrand)) return isAudio ? MOBILE_2_AUDIO : MOBILE_2_VIDEO;
  if (/^3g/.test(majorBrand)) return isAudio ? MOBILE_AUDIO : MOBILE_VIDEO;
  if (isAudio) return AUDIO;
  return /^M4V/.test(majorBrand) ? APPLE_VIDEO : VIDEO;
}
