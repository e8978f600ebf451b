import type { UnusableFile } from '../probing/probed-file.ts';
import type { AlignedStream } from './align-times.ts';
import type { LeftOut, PlannedStream } from './packaging-plan.ts';

/** Files of a kind that are named one by one; beyond, they are counted. */
const MAX_NAMED = 10;

/** Renditions of one film may differ so much in length, in seconds and as a part of it, without a warning. */
const LENGTH_TOLERANCE_SECONDS = 1;
const LENGTH_TOLERANCE = 0.01;

/** Everything that a plan loses, or that is doubtful about it, as sentences. */
export function planWarnings(
  streams: readonly PlannedStream[],
  leftOut: readonly LeftOut[],
  unusable: readonly UnusableFile[],
): string[] {
  const losses = leftOut.map(
    ({ file, what, reason }) => `${what.charAt(0).toUpperCase()}${what.slice(1)} of "${file}" was left out: ${reason}.`,
  );
  return [
    // Phones write several tracks of metadata, which are told of once.
    ...new Set(losses),
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

function notMedia(files: readonly UnusableFile[]): string[] {
  return [...Map.groupBy(files, ({ problem }) => problem)].map(([problem, group]) => {
    const names = group.slice(0, MAX_NAMED).map(({ path }) => `"${path}"`);
    const more = group.length > MAX_NAMED ? ` and ${group.length - MAX_NAMED} more` : '';
    return `Left out: ${names.join(', ')}${more}, which ${problem}.`;
  });
}

/** An edit list hides what comes before its start; packaged, that is shown. */
function shownPreroll(streams: readonly PlannedStream[]): string[] {
  const shown = streams.filter(
    ({ kind, route, startSeconds }) => kind === 'video' && route.kind === 'feed' && startSeconds < 0,
  );
  return shown.map(
    ({ file, startSeconds }) =>
      `"${file}" starts between key frames, by an edit list: the ${(-startSeconds).toFixed(2)} s before its start are shown, and what comes from other files is that much early beside it. Encode it anew from where it is to start.`,
  );
}

/** A recording that starts between key frames. */
function undecodable(streams: readonly PlannedStream[]): string[] {
  const late = streams.filter(({ undecodableSeconds }) => undecodableSeconds > 0);
  return late.map(
    ({ file, undecodableSeconds }) =>
      `The video of "${file}" starts between key frames: ${undecodableSeconds.toFixed(2)} s of it cannot be decoded and were left out.`,
  );
}

/** Browsers turn the picture as init segments say; CMAF asks no player to. */
function turned(streams: readonly PlannedStream[]): string[] {
  const lying = streams.filter(({ rotation }) => rotation !== 0);
  return lying.map(
    ({ file, rotation }) =>
      `"${file}" asks players to turn its picture by ${rotation} degrees, and so does the publication, in its init segments: browsers do it, other players may not. Encode it upright to be sure.`,
  );
}

/** FLAC as players know it has 24 bits. */
function narrowed(streams: readonly PlannedStream[]): string[] {
  return streams
    .filter(({ sourceCodec }) => /^pcm-s32/.test(sourceCodec))
    .map(({ file }) => `The samples of "${file}" have 32 bits, of which FLAC keeps the upper 24.`);
}

/** Of TTML the words and times are kept. */
function unstyled(streams: readonly PlannedStream[]): string[] {
  return streams
    .filter(({ sourceCodec }) => sourceCodec === 'ttml' || sourceCodec === 'stpp')
    .map(
      ({ file, language }) =>
        `The subtitles (${language}) in "${file}" are TTML and became WebVTT: where they stand and how they look was left out.`,
    );
}

/** Each codec has a group of sound of its own, and players stay in one. */
function scatteredLanguages(streams: readonly PlannedStream[]): string[] {
  const audio = streams.filter(({ kind }) => kind === 'audio');
  const groups = [...Map.groupBy(audio, ({ codec }) => codec)].map(([codec, group]) => ({
    codec,
    languages: new Set(group.map(({ language }) => language)),
  }));
  const all = new Set(audio.map(({ language }) => language));
  if (groups.every(({ languages }) => languages.size === all.size)) return [];
  const described = groups.map(({ codec, languages }) => `${codec}: ${[...languages].join(', ')}`).join('; ');
  return [
    `Not every language is there in every codec (${described}), and most players offer the languages of one codec only. Give all languages the same codec.`,
  ];
}

/** Subtitles that go on when the film is over: the film decides. */
function clippedSubtitles(streams: readonly PlannedStream[]): string[] {
  const endSeconds = mediaEnd(streams);
  if (endSeconds === null) return [];
  return streams.flatMap(({ kind, file, startSeconds, shiftSeconds, durationSeconds }) => {
    const end = startSeconds + shiftSeconds + (durationSeconds ?? 0);
    if (kind !== 'text' || end <= endSeconds + LENGTH_TOLERANCE_SECONDS) return [];
    return [
      `The subtitles in "${file}" go on until ${end.toFixed(1)} s, and the film ends at ${endSeconds.toFixed(1)} s: what comes later was left out.`,
    ];
  });
}

/** Subtitles that would be shown during the film, too, if they counted from its start. */
export function assumedTimes(chosen: readonly AlignedStream[]): string[] {
  const endSeconds = mediaEnd(chosen.map(timesOf)) ?? 0;
  const isDoubtful = ({ stream, isAssumed }: AlignedStream): boolean =>
    isAssumed && stream.startSeconds + (stream.durationSeconds ?? 0) <= endSeconds + LENGTH_TOLERANCE_SECONDS;
  return chosen
    .filter(isDoubtful)
    .map(
      ({ file, shiftSeconds }) =>
        `The subtitles in "${file.path}" do not say which time theirs is (X-TIMESTAMP-MAP); they were taken to count like the media, which start at ${(-shiftSeconds).toFixed(1)} s. Look at the result.`,
    );
}

type StreamTimes = Pick<PlannedStream, 'kind' | 'startSeconds' | 'shiftSeconds' | 'durationSeconds'>;

export function timesOf({ stream, shiftSeconds }: AlignedStream): StreamTimes {
  return { ...stream, shiftSeconds };
}

/** Where the last frame or sample ends, in seconds from the start of the publication; null where no file says. */
export function mediaEnd(streams: readonly StreamTimes[]): number | null {
  const ends = streams.flatMap(({ kind, startSeconds, shiftSeconds, durationSeconds }) =>
    kind === 'text' || durationSeconds === null ? [] : [Math.max(startSeconds + shiftSeconds, 0) + durationSeconds],
  );
  return ends.length === 0 ? null : Math.max(...ends);
}

/** Files of different lengths are mostly no renditions of one film. */
function lengthWarnings(streams: readonly PlannedStream[]): string[] {
  const timed = streams.filter(({ kind, durationSeconds }) => kind !== 'text' && durationSeconds !== null);
  const longest = timed.reduce((most, { durationSeconds }) => Math.max(most, durationSeconds ?? 0), 0);
  const tolerance = Math.max(LENGTH_TOLERANCE_SECONDS, longest * LENGTH_TOLERANCE);
  const short = timed.filter(({ durationSeconds }) => longest - (durationSeconds ?? 0) > tolerance);
  return short.map(
    ({ file, kind, durationSeconds }) =>
      `The ${kind} of "${file}" plays for ${durationSeconds?.toFixed(1)} s and the longest of the folder for ${longest.toFixed(1)} s; all were put into one publication.`,
  );
}
