import { sampleOfNames } from '#errors/entry.ts';
import { distinctWarnings, type Warning, warning } from '#errors/warning.ts';
import type { LeftOut, PlannedStream } from '../packaging-plan.ts';
import type { UnusableFile } from '../probed-file.ts';
import type { AlignedStream } from './align-times.ts';

/** Tolerated difference in duration of renditions, in seconds and as a fraction. */
const LENGTH_TOLERANCE_SECONDS = 1;
const LENGTH_TOLERANCE = 0.01;

/** Returns a warning for everything that a plan loses, or that is doubtful about it. */
export function planWarnings(
  streams: readonly PlannedStream[],
  leftOut: readonly LeftOut[],
  unusable: readonly UnusableFile[],
): Warning[] {
  const losses = leftOut.map(({ file, what, reason }) =>
    warning('TRACK_LEFT_OUT', { file, track: what, problem: reason }),
  );
  return [
    // Phones write several metadata tracks, for which one warning is enough.
    ...distinctWarnings(losses),
    ...notMedia(unusable.filter(({ kind }) => kind === 'not-media')),
    ...lengthWarnings(streams),
    ...clippedSubtitles(streams),
    ...shownPreroll(streams),
    ...undecodable(streams),
    ...turned(streams),
    ...narrowed(streams),
    ...unstyled(streams),
    ...scatteredLanguages(streams),
  ];
}

function notMedia(files: readonly UnusableFile[]): Warning[] {
  return [...Map.groupBy(files, ({ problem }) => problem)].map(([problem, group]) =>
    warning('FILES_NOT_MEDIA', { ...sampleOfNames(group.map(({ path }) => path)), problem }),
  );
}

/** Warns about packets before the start of an edit list: packaged, they are shown. */
function shownPreroll(streams: readonly PlannedStream[]): Warning[] {
  const shown = streams.filter(
    ({ kind, route, startSeconds }) => kind === 'video' && route.kind === 'feed' && startSeconds < 0,
  );
  return shown.map(({ file, startSeconds }) => warning('PREROLL_SHOWN', { file, seconds: -startSeconds }));
}

/** Warns about recordings that start between key frames. */
function undecodable(streams: readonly PlannedStream[]): Warning[] {
  const late = streams.filter(({ undecodableSeconds }) => undecodableSeconds > 0);
  return late.map(({ file, undecodableSeconds: seconds }) => warning('START_NOT_DECODABLE', { file, seconds }));
}

/** Warns about rotated pictures: browsers apply the rotation in init segments, but CMAF requires it of no player. */
function turned(streams: readonly PlannedStream[]): Warning[] {
  const lying = streams.filter(({ rotation }) => rotation !== 0);
  return lying.map(({ file, rotation: degrees }) => warning('PICTURE_ROTATED', { file, degrees }));
}

/** Warns about samples of 32 bits: players support FLAC of up to 24. */
function narrowed(streams: readonly PlannedStream[]): Warning[] {
  return streams
    .filter(({ sourceCodec }) => /^pcm-s32/.test(sourceCodec))
    .map(({ file }) => warning('SAMPLES_NARROWED', { file, sourceBits: 32, keptBits: 24 }));
}

/** Warns about TTML, of which only text and times are kept. */
function unstyled(streams: readonly PlannedStream[]): Warning[] {
  return streams
    .filter(({ sourceCodec }) => sourceCodec === 'ttml' || sourceCodec === 'stpp')
    .map(({ file, language }) => warning('SUBTITLE_STYLES_LOST', { file, language }));
}

/** Warns about languages that only some codecs have: each codec is an audio group of its own, and players stay in one. */
function scatteredLanguages(streams: readonly PlannedStream[]): Warning[] {
  const audio = streams.filter(({ kind }) => kind === 'audio');
  const codecs = [...Map.groupBy(audio, ({ codec }) => codec)].map(([codec, group]) => ({
    codec,
    languages: [...new Set(group.map(({ language }) => language))],
  }));
  const all = new Set(audio.map(({ language }) => language));
  if (codecs.every(({ languages }) => languages.length === all.size)) return [];
  return [warning('LANGUAGES_SPLIT_BY_CODEC', { codecs })];
}

/** Warns about subtitles that are cut at the end of the media. */
function clippedSubtitles(streams: readonly PlannedStream[]): Warning[] {
  const mediaEndSeconds = mediaEnd(streams);
  if (mediaEndSeconds === null) return [];
  return streams.flatMap(({ kind, file, startSeconds, shiftSeconds, durationSeconds }) => {
    const endSeconds = startSeconds + shiftSeconds + (durationSeconds ?? 0);
    if (kind !== 'text' || endSeconds <= mediaEndSeconds + LENGTH_TOLERANCE_SECONDS) return [];
    return [warning('SUBTITLES_CUT', { file, endSeconds, mediaEndSeconds })];
  });
}

/** Warns about subtitles on an assumed timeline that would be visible on the other one, too. */
export function assumedTimes(chosen: readonly AlignedStream[]): Warning[] {
  const endSeconds = mediaEnd(chosen.map(timesOf)) ?? 0;
  const isDoubtful = ({ stream, isAssumed }: AlignedStream): boolean =>
    isAssumed && stream.startSeconds + (stream.durationSeconds ?? 0) <= endSeconds + LENGTH_TOLERANCE_SECONDS;
  return chosen
    .filter(isDoubtful)
    .map(({ file, shiftSeconds }) =>
      warning('SUBTITLE_TIMES_ASSUMED', { file: file.path, mediaStartSeconds: -shiftSeconds }),
    );
}

type StreamTimes = Pick<PlannedStream, 'kind' | 'startSeconds' | 'shiftSeconds' | 'durationSeconds'>;

export function timesOf({ stream, shiftSeconds }: AlignedStream): StreamTimes {
  return { ...stream, shiftSeconds };
}

/**
 * Returns the end of the last frame or sample, in seconds from the start of the publication; null where no file states it.
 */
export function mediaEnd(streams: readonly StreamTimes[]): number | null {
  const ends = streams.flatMap(({ kind, startSeconds, shiftSeconds, durationSeconds }) =>
    kind === 'text' || durationSeconds === null ? [] : [Math.max(startSeconds + shiftSeconds, 0) + durationSeconds],
  );
  return ends.length === 0 ? null : Math.max(...ends);
}

/** Warns about files of different duration, which are mostly not renditions of one film. */
function lengthWarnings(streams: readonly PlannedStream[]): Warning[] {
  const timed = streams.filter(({ kind, durationSeconds }) => kind !== 'text' && durationSeconds !== null);
  const longestSeconds = timed.reduce((most, { durationSeconds }) => Math.max(most, durationSeconds ?? 0), 0);
  const tolerance = Math.max(LENGTH_TOLERANCE_SECONDS, longestSeconds * LENGTH_TOLERANCE);
  const short = timed.filter(({ durationSeconds }) => longestSeconds - (durationSeconds ?? 0) > tolerance);
  return short.map(({ file, kind, durationSeconds }) =>
    warning('RENDITION_LENGTHS_DIFFER', { file, kind, seconds: durationSeconds ?? 0, longestSeconds }),
  );
}
