import { warningEntry } from './entry.ts';
import { listNames, type NameSample } from './named-files.ts';

/** What a packaged publication lost of its sources, or what is doubtful about it. */
export const packagingWarnings = {
  TRACK_LEFT_OUT: warningEntry<{ file: string; track: string; problem: string }>(
    ({ file, track, problem }) =>
      `${track.charAt(0).toUpperCase()}${track.slice(1)} of "${file}" was left out: ${problem}.`,
  ),
  FILES_NOT_MEDIA: warningEntry<NameSample & { problem: string }>(
    ({ problem, ...files }) => `Left out: ${listNames(files)}, which ${problem}.`,
  ),
  FILES_NOT_IN_PLAYLISTS: warningEntry<NameSample>(
    (files) => `Left out, because no playlist names them: ${listNames(files)}.`,
  ),
  RENDITIONS_NOT_CHOSEN: warningEntry<NameSample>(
    (renditions) => `Left out, because the patterns do not choose them: ${listNames(renditions)}.`,
  ),
  AUXILIARY_RENDITIONS_LEFT_OUT: warningEntry<{ kinds: readonly string[] }>(
    ({ kinds }) =>
      `Left out: ${kinds.join(' and ')}, which publications that are made anew do not have; params.iframe_playlists makes playlists of key frames.`,
  ),
  PATTERN_NOT_USED: warningEntry<{ field: string; pattern: string }>(
    ({ field, pattern }) =>
      `${field} ("${pattern}") was not used: the folder is no publication, and its media were packaged whole.`,
  ),
  RENDITION_LENGTHS_DIFFER: warningEntry<{ file: string; kind: string; seconds: number; longestSeconds: number }>(
    ({ file, kind, seconds, longestSeconds }) =>
      `The ${kind} of "${file}" plays for ${seconds.toFixed(1)} s and the longest of the folder for ${longestSeconds.toFixed(1)} s; all were put into one publication.`,
  ),
  SUBTITLES_CUT: warningEntry<{ file: string; endSeconds: number; mediaEndSeconds: number }>(
    ({ file, endSeconds, mediaEndSeconds }) =>
      `The subtitles in "${file}" go on until ${endSeconds.toFixed(1)} s, and the film ends at ${mediaEndSeconds.toFixed(1)} s: what comes later was left out.`,
  ),
  SUBTITLES_EMPTY: warningEntry<{ file: string; language: string }>(
    ({ file, language }) =>
      `The subtitle track (${language}) of "${file}" was left out: it holds no subtitles that are shown during the film.`,
  ),
  SUBTITLE_STYLES_LOST: warningEntry<{ file: string; language: string }>(
    ({ file, language }) =>
      `The subtitles (${language}) in "${file}" are TTML and became WebVTT: where they stand and how they look was left out.`,
  ),
  SUBTITLE_TIMES_ASSUMED: warningEntry<{ file: string; mediaStartSeconds: number }>(
    ({ file, mediaStartSeconds }) =>
      `The subtitles in "${file}" do not say which time theirs is (X-TIMESTAMP-MAP); they were taken to count like the media, which start at ${mediaStartSeconds.toFixed(1)} s. Look at the result.`,
  ),
  PREROLL_SHOWN: warningEntry<{ file: string; seconds: number }>(
    ({ file, seconds }) =>
      `"${file}" starts between key frames, by an edit list: the ${seconds.toFixed(2)} s before its start are shown, and what comes from other files is that much early beside it. Encode it anew from where it is to start.`,
  ),
  START_NOT_DECODABLE: warningEntry<{ file: string; seconds: number }>(
    ({ file, seconds }) =>
      `The video of "${file}" starts between key frames: ${seconds.toFixed(2)} s of it cannot be decoded and were left out.`,
  ),
  PICTURE_ROTATED: warningEntry<{ file: string; degrees: number }>(
    ({ file, degrees }) =>
      `"${file}" asks players to turn its picture by ${degrees} degrees, and so does the publication, in its init segments: browsers do it, other players may not. Encode it upright to be sure.`,
  ),
  SAMPLES_NARROWED: warningEntry<{ file: string; sourceBits: number; keptBits: number }>(
    ({ file, sourceBits, keptBits }) =>
      `The samples of "${file}" have ${sourceBits} bits, of which FLAC keeps the upper ${keptBits}.`,
  ),
  LANGUAGES_SPLIT_BY_CODEC: warningEntry<{ codecs: readonly { codec: string; languages: readonly string[] }[] }>(
    ({ codecs }) =>
      `Not every language is there in every codec (${codecs.map(({ codec, languages }) => `${codec}: ${languages.join(', ')}`).join('; ')}), and most players offer the languages of one codec only. Give all languages the same codec.`,
  ),
  KEY_FRAMES_NOT_ALIGNED: warningEntry<{ file: string; otherFile: string }>(
    ({ file, otherFile }) =>
      `The key frames of "${file}" do not stand where those of "${otherFile}" do, so the segments of the renditions begin at different times: players may stutter when they switch. Encode both with key frames at the same times.`,
  ),
  PACKAGER_BYPASSED: warningEntry<{ files: readonly string[]; problem: string }>(
    ({ files, problem }) =>
      `The packager did not take ${files.map((file) => `"${file}"`).join(', ')} directly (${problem}); ffmpeg read it and handed the same packets on. Look at the result.`,
  ),
  FRAME_CUT_SHORT: warningEntry<{ file: string; missingBytes: number }>(
    ({ file, missingBytes }) =>
      `"${file}" ends in the middle of a frame, of which ${missingBytes} bytes are missing: it may be cut short.`,
  ),
  PACKET_CUT_SHORT: warningEntry<{ file: string }>(
    ({ file }) => `"${file}" ends in the middle of a packet: it may be cut short.`,
  ),
  FRAGMENTS_END_EARLY: warningEntry<{ file: string; statedSeconds: number; seconds: number }>(
    ({ file, statedSeconds, seconds }) =>
      `"${file}" says that it is ${statedSeconds.toFixed(1)} s long, and its fragments end at ${seconds.toFixed(1)} s: it may be cut short.`,
  ),
};
