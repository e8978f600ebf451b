import { entry, listNames, type NameSample, warningEntry } from '../entry.ts';

/** A file of a folder and what is wrong with it; the problem ends the sentence `"<file>" …`. */
interface FileProblem {
  readonly file: string;
  readonly problem: string;
}

const list = (problems: readonly FileProblem[]): string =>
  problems.map(({ file, problem }) => `"${file}" ${problem.replace(/\.$/, '')}`).join('; ');

/** Errors of a folder that is to be packaged, and of the programs that package it. */
export const packagingErrors = {
  PACKAGING_NO_MEDIA: entry<{ folder: string; fileCount: number; problems: readonly FileProblem[] }>(
    'PROCESSING_FAILED',
    ({ folder, fileCount, problems }) =>
      `No file in "${folder}" holds audio or video that can be packaged: ${list(problems)}${fileCount > problems.length ? '; …' : ''}. Submit the folder that the media lie in, or add them.`,
  ),
  PACKAGING_FILES_BROKEN: entry<{ folder: string; problems: readonly FileProblem[]; count: number }>(
    'PROCESSING_FAILED',
    ({ folder, problems, count }) =>
      `${count === 1 ? 'A file' : `${count} files`} of "${folder}" cannot be read: ${list(problems)}${count > problems.length ? '; …' : ''}. Repair or remove them, and submit the folder again.`,
  ),
  PACKAGING_TOO_LARGE: entry<{ folder: string; count: number; limit: number }>(
    'PROCESSING_FAILED',
    ({ folder, count, limit }) =>
      `"${folder}" holds ${count} streams, and a publication is made of at most ${limit}. A folder is one film or programme with its renditions and languages: submit several folders.`,
  ),
  PACKAGING_FILMS_DIFFER: entry<{
    folder: string;
    films: readonly { readonly file: string; readonly seconds: number }[];
    count: number;
    limitSeconds: number;
  }>(
    'PROCESSING_FAILED',
    ({ folder, films, count, limitSeconds }) =>
      `The ${count} videos of "${folder}" differ by more than ${limitSeconds} s in length and are not renditions of one film: ${films.map(({ file, seconds }) => `"${file}" (${seconds.toFixed(1)} s)`).join(', ')}${count > films.length ? ' and others' : ''}. Choose the files of one film with params.include, such as ["film-*.mp4", "film.*.srt"], or submit a folder for each film.`,
  ),
  PACKAGING_TRACK_UNKNOWN: entry<{ file: string; stream: number | null; streamCount: number | null }>(
    'PROCESSING_FAILED',
    ({ file, stream, streamCount }) =>
      streamCount === null
        ? `params.tracks names "${file}", and the folder holds no media of that name. Paths are relative to the folder.`
        : `params.tracks names stream ${stream} of "${file}", which holds ${streamCount}, counted from zero.`,
  ),
  PUBLICATION_NOT_REPACKAGED: entry<{ playlist: string; line: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ playlist, line, problem }) =>
      `The folder is a publication already, and "${playlist}" (line ${line}) cannot be packaged: ${problem}. Correct the playlist, or submit the media that it was made from.`,
  ),
  PACKAGING_FFMPEG_MISSING: entry<{ files: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ files }) =>
      `${files.map((file) => `"${file}"`).join(', ')}: the packager does not read this container or codec, and ffmpeg, which would bring it to one that it reads, is not installed on the service host. Install ffmpeg there, or submit MP4 with H.264, HEVC or AV1 and AAC.`,
    { class: 'service' },
  ),
  PACKAGING_WARNED: entry<{ warnings: readonly string[]; reasons: readonly string[] }>(
    'PROCESSING_FAILED',
    ({ warnings }) =>
      `params.strict does not allow what would be a warning: ${warnings.join(' ')} Correct that, or submit the folder without params.strict.`,
  ),
  PACKAGER_MISSING: entry<{ path: string; platform: string }>(
    'INTERNAL_ERROR',
    ({ path, platform }) =>
      `The packager is not installed for ${platform}: there is no program at ${path}. Run "npm ci" on the service host; shaka-packager comes for Linux and macOS (x64, arm64) and Windows (x64).`,
    { callersSee: 'The packager is not installed on the host of the service. The operator installs it.' },
  ),
  PACKAGER_FAILED: entry<{ file: string | null; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, problem }) =>
      `${file === null ? 'Packaging failed' : `"${file}" could not be packaged`}: ${problem}. Check whether the media play to their end, and write damaged ones anew.`,
  ),
  FEED_FAILED: entry<{ file: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, problem }) => `"${file}" could not be read by ffmpeg: ${problem}. Check the file, or submit it as MP4.`,
  ),
  PROGRAM_STALLED: entry<{ program: string; seconds: number }>(
    'PROCESSING_FAILED',
    ({ program, seconds }) =>
      `${program} wrote nothing for ${seconds} s and was ended. Check the media; where they lie on a network file system, check that too.`,
  ),
  PROGRAM_TOO_SLOW: entry<{ program: string; seconds: number }>(
    'PROCESSING_FAILED',
    ({ program, seconds }) => `${program} was not done after ${seconds} s and was ended. Split the folder.`,
  ),
  PROGRAM_TOO_LARGE: entry<{ program: string; limitBytes: number }>(
    'PROCESSING_FAILED',
    ({ program, limitBytes }) =>
      `${program} took more than ${limitBytes} bytes of memory and was ended. Check whether a file is damaged; else split the folder.`,
  ),
  PROGRAM_TOLD_TO_END: entry<{ program: string }>(
    'INTERNAL_ERROR',
    ({ program }) =>
      `${program} was told to end before it was done, as when the host shuts down. Submit the folder again.`,
    { class: 'retry' },
  ),
  PROGRAM_NOT_STARTED: entry<{ program: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ program, problem }) => `${program} could not be started: ${problem}.`,
    {
      class: 'retry',
      callersSee:
        'A program that packages media could not be started. Try again later; the log of the service says why.',
    },
  ),
  SUBTITLES_MALFORMED: entry<{ name: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, problem }) => `The subtitles (TTML) in "${name}" cannot be read: ${problem}. Repair or remove them.`,
  ),
  SUBTITLES_TOO_LARGE: entry<{ name: string; limitBytes: number; maxSamples: number }>(
    'PROCESSING_FAILED',
    ({ name, limitBytes, maxSamples }) =>
      `The subtitles in "${name}" have more than ${limitBytes} bytes or ${maxSamples} samples: the file is damaged, or no film. Check it.`,
  ),
  SAMPLE_PAST_END: entry<{ name: string; end: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, end, sizeBytes }) =>
      `A sample of the subtitles in "${name}" ends at byte ${end}, and the file at byte ${sizeBytes}: it is cut short or damaged. Submit it whole.`,
  ),
  PACKAGED_CUT_SHORT: entry<{ file: string; kind: string; seconds: number; expectedSeconds: number }>(
    'PROCESSING_FAILED',
    ({ file, kind, seconds, expectedSeconds }) =>
      `Of the ${kind} of "${file}" only ${seconds.toFixed(1)} of ${expectedSeconds.toFixed(1)} s could be packaged: the file is cut short or damaged, or there are gaps in its time. Submit it whole.`,
  ),
  PACKAGED_OUTPUT_INVALID: entry<{ file: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ file, problem }) =>
      `The publication was checked before delivery, and "${file}" is not as it must be: ${problem}. It was not delivered; report this with the input if it happens again.`,
  ),
};

/** Warnings about parts of its sources that a packaged publication lacks or may show wrongly. */
export const packagingWarnings = {
  TRACK_LEFT_OUT: warningEntry<{ file: string; track: string; problem: string }>(
    ({ file, track, problem }) =>
      `${track.charAt(0).toUpperCase()}${track.slice(1)} of "${file}" was left out: ${problem}.`,
  ),
  FILES_NOT_MEDIA: warningEntry<NameSample & { problem: string }>(
    ({ problem, ...files }) => `Left out: ${listNames(files)}, which ${problem}.`,
  ),
  SIGNED_COPIES_LEFT_OUT: warningEntry<NameSample>(
    (files) =>
      `Left out, because they are named as signed copies of other files of the folder: ${listNames(files)}; params.include chooses files otherwise.`,
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
  DEFAULT_LANGUAGE_UNMATCHED: warningEntry<{ language: string; file: string | null; fileLanguage: string | null }>(
    ({ language, file, fileLanguage }) =>
      `No audio or subtitles are known to be in the default language ("${language}")${file === null ? '' : `; players choose the audio of "${file}" (${fileLanguage ?? 'the file states no language'})`}. Correct params.default_language, or name the languages of tracks in params.tracks.`,
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
