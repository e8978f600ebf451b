import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import type { DefaultLanguages, LeftOut, PackagingPlan, PlannedStream, PublicationShape } from './packaging-plan.ts';
import { type AlignedStream, alignTimes } from './planning/align-times.ts';
import { chooseStreams } from './planning/choose-streams.ts';
import { canonicalTag, languageName, UNKNOWN_LANGUAGE } from './planning/languages.ts';
import { assumedTimes, mediaEnd, planWarnings, timesOf } from './planning/plan-warnings.ts';
import { becomesFlac } from './planning/stream-routes.ts';
import type { ProbedFile, ProbedFolder, ProbedStream } from './probed-file.ts';

/** Streams of one run of the packager; each takes threads and memory. */
const MAX_STREAMS = 100;

/** Problems that one error lists; a folder may have thousands of files. */
const MAX_PROBLEMS = 10;

/** Tolerated difference in length of files with the same film, in seconds: encoders round, and add or drop a few frames. */
const MAX_DIFFERENCE_SECONDS = 1;

/** The same for the renditions of a publication, whose recording may have stopped a segment apart. */
const MAX_RENDITION_DIFFERENCE_SECONDS = 10;

/** Lengths that one error lists from each end. */
const MAX_LENGTHS_LISTED = 5;

/**
 * Plans the publication of a folder: for every stream its rendition and its route to the packager, or the reason why it is
 * left out. Throws `PACKAGING_FILES_BROKEN`, `PACKAGING_TRACK_UNKNOWN`, `PACKAGING_NO_MEDIA`, `PACKAGING_TOO_LARGE`,
 * `PACKAGING_FILMS_DIFFER`, or `PACKAGING_FFMPEG_MISSING` where a route needs ffmpeg.
 */
export function planPackaging(folder: ProbedFolder, params: PackageParams, hasFfmpeg: boolean): PackagingPlan {
  refuseBroken(folder);
  refuseUnknownTracks(folder.files, params);
  const choice = chooseStreams(folder.files, params.tracks ?? []);
  const { chosen, late } = withoutLateSubtitles(alignTimes(choice.chosen, folder.sharedTimeline));
  const leftOut = [...choice.leftOut, ...late];
  if (!chosen.some(({ stream }) => stream.kind !== 'text')) throw nothingToPackage(folder, leftOut);
  if (chosen.length > MAX_STREAMS) {
    throw new AppError('PACKAGING_TOO_LARGE', { folder: folder.name, count: chosen.length, limit: MAX_STREAMS });
  }
  refuseDifferentFilms(folder, chosen);
  const requested = canonicalTag(params.default_language ?? '');
  const defaults = defaultLanguages(chosen, requested);
  const streams = nameRenditions(chosen, requested === null ? null : defaults.defaultLanguage);
  if (!hasFfmpeg) refuseFeeds(streams);
  return {
    ...shapeOf(params),
    ...defaults,
    streams,
    leftOut,
    warnings: [
      ...warningsOfSources(folder.files, streams),
      ...planWarnings(streams, leftOut, folder.unusable),
      ...unmatchedDefault(streams, requested),
      ...assumedTimes(chosen),
    ],
  };
}

interface FilmLength {
  readonly file: string;
  readonly seconds: number;
}

/**
 * Throws `PACKAGING_FILMS_DIFFER` where videos differ in length: they are no renditions of one film, and a player that
 * switches between them would show another one. Files that do not state their length are not compared.
 */
function refuseDifferentFilms({ name, sharedTimeline }: ProbedFolder, chosen: readonly AlignedStream[]): void {
  const lengths = chosen.flatMap(lengthOf).sort((first, second) => second.seconds - first.seconds);
  const [longest, shortest] = [lengths[0], lengths.at(-1)];
  if (longest === undefined || shortest === undefined) return;
  const isPublication = lengths.every(({ file }) => sharedTimeline.has(file));
  const limitSeconds = isPublication ? MAX_RENDITION_DIFFERENCE_SECONDS : MAX_DIFFERENCE_SECONDS;
  if (longest.seconds - shortest.seconds <= limitSeconds) return;
  const isEveryListed = lengths.length <= 2 * MAX_LENGTHS_LISTED;
  const films = isEveryListed
    ? lengths
    : [...lengths.slice(0, MAX_LENGTHS_LISTED), ...lengths.slice(-MAX_LENGTHS_LISTED)];
  throw new AppError('PACKAGING_FILMS_DIFFER', { folder: name, films, count: lengths.length, limitSeconds });
}

/** Returns the length of a video in its file, in seconds; nothing for other streams, and where it is not known. */
function lengthOf({ file, stream }: AlignedStream): FilmLength[] {
  const { kind, durationSeconds, undecodableSeconds } = stream;
  if (kind !== 'video' || durationSeconds === null) return [];
  return [{ file: file.path, seconds: durationSeconds + undecodableSeconds }];
}

/**
 * Chooses the default languages for a requested one, which is canonical, or null where the request names none. Audio
 * falls back to a track that may have the requested language, because its file states none, and then to the first one:
 * without a default, players choose at random. Subtitles are shown only where no audio has the requested language.
 */
function defaultLanguages(chosen: readonly AlignedStream[], requested: string | null): DefaultLanguages {
  const audio = chosen.filter(({ stream }) => stream.kind === 'audio');
  const text = chosen.filter(({ stream }) => stream.kind === 'text');
  const heard = matchOf(audio, requested);
  return {
    defaultLanguage: heard ?? (requested === null ? null : untagged(audio)) ?? audio[0]?.language ?? null,
    defaultTextLanguage: heard === null ? matchOf(text, requested) : null,
  };
}

/** Returns the language of the streams that matches: the same one, else a regional form of it (RFC 4647 §3.3.1). */
function matchOf(streams: readonly Pick<PlannedStream, 'language'>[], requested: string | null): string | null {
  if (requested === null) return null;
  const languages = streams.map(({ language }) => language);
  return languages.find((each) => each === requested) ?? languages.find(isFormOf(requested)) ?? null;
}

function isFormOf(requested: string): (language: string) => boolean {
  return (language) => language.startsWith(`${requested}-`);
}

function untagged(audio: readonly AlignedStream[]): string | null {
  const isMain = ({ role }: AlignedStream): boolean => role === null || role === 'main';
  return audio.some((stream) => stream.language === UNKNOWN_LANGUAGE && isMain(stream)) ? UNKNOWN_LANGUAGE : null;
}

/** Warns about a requested language that no track is known to have. `streams` are in the order of the publication. */
function unmatchedDefault(streams: readonly PlannedStream[], requested: string | null): Warning[] {
  const spoken = streams.filter(({ kind }) => kind !== 'video');
  if (requested === null || matchOf(spoken, requested) !== null) return [];
  const audio = spoken.find(({ kind }) => kind === 'audio');
  const { file = null, language = UNKNOWN_LANGUAGE } = audio ?? {};
  const fileLanguage = language === UNKNOWN_LANGUAGE ? null : language;
  return [warning('DEFAULT_LANGUAGE_UNMATCHED', { language: requested, file, fileLanguage })];
}

/** Returns the warnings of files of which something is packaged. */
function warningsOfSources(files: readonly ProbedFile[], streams: readonly PlannedStream[]): Warning[] {
  const used = new Set(streams.map(({ file }) => file));
  return files.filter(({ path }) => used.has(path)).flatMap(({ warnings }) => warnings);
}

/** Separates subtitles that start after the media ends, which the packager refuses. */
function withoutLateSubtitles(chosen: readonly AlignedStream[]): { chosen: AlignedStream[]; late: LeftOut[] } {
  const endSeconds = mediaEnd(chosen.map(timesOf)) ?? Number.POSITIVE_INFINITY;
  const isLate = ({ stream, shiftSeconds }: AlignedStream): boolean =>
    stream.kind === 'text' && stream.startSeconds + shiftSeconds >= endSeconds;
  const late = chosen.filter(isLate).map(({ file }) => ({
    file: file.path,
    what: 'the subtitle track',
    reason: 'it starts when the film is over',
  }));
  return { chosen: chosen.filter((candidate) => !isLate(candidate)), late };
}

function shapeOf(params: PackageParams): Omit<PublicationShape, keyof DefaultLanguages> {
  return {
    segmentSeconds: params.segment_duration ?? 4,
    formats: [...new Set(params.formats ?? (['hls', 'dash'] as const))],
    hlsName: params.hls_name ?? 'master.m3u8',
    dashName: params.dash_name ?? 'manifest.mpd',
    iFramePlaylists: params.iframe_playlists ?? false,
  };
}

function refuseBroken({ name, unusable }: ProbedFolder): void {
  const broken = unusable.filter(({ kind }) => kind === 'broken');
  if (broken.length === 0) return;
  throw new AppError('PACKAGING_FILES_BROKEN', {
    folder: name,
    problems: broken.slice(0, MAX_PROBLEMS).map(({ path, problem }) => ({ file: path, problem })),
    count: broken.length,
  });
}

function refuseUnknownTracks(files: readonly ProbedFile[], { tracks = [] }: PackageParams): void {
  for (const [index, { file, stream }] of tracks.entries()) {
    const found = files.find(({ path }) => path === file);
    if (found !== undefined && (stream === undefined || stream < found.streams.length)) continue;
    throw new AppError(
      'PACKAGING_TRACK_UNKNOWN',
      { file, stream: stream ?? null, streamCount: found?.streams.length ?? null },
      { field: `params.tracks[${index}]` },
    );
  }
}

function nothingToPackage({ name, unusable, files }: ProbedFolder, leftOut: readonly LeftOut[]): AppError {
  const problems = [
    ...leftOut.map(({ file, what, reason }) => ({ file, problem: `${what}: ${reason}` })),
    ...unusable.map(({ path, problem }) => ({ file: path, problem })),
    ...files.filter(isTextAlone).map(({ path }) => ({ file: path, problem: 'holds subtitles alone' })),
  ];
  return new AppError('PACKAGING_NO_MEDIA', {
    folder: name,
    fileCount: files.length + unusable.length,
    problems: problems.slice(0, MAX_PROBLEMS),
  });
}

function isTextAlone({ streams }: ProbedFile): boolean {
  return streams.length > 0 && streams.every(({ kind }) => kind === 'text');
}

function refuseFeeds(streams: readonly PlannedStream[]): void {
  const files = new Set(streams.filter(needsFfmpeg).map(({ file }) => file));
  if (files.size > 0) throw new AppError('PACKAGING_FFMPEG_MISSING', { files: [...files].slice(0, MAX_PROBLEMS) });
}

/** Returns whether a stream needs ffmpeg: one that the packager does not read, or subtitles that only ffmpeg reads. */
function needsFfmpeg({ route }: PlannedStream): boolean {
  return route.kind === 'feed' || (route.kind === 'text' && route.reader === 'ffmpeg');
}

/** Limit of a label, which may come from a file and is shown in menus. */
const MAX_LABEL_LENGTH = 100;

/** Words of a label after the language, by role. */
const ROLE_WORDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    commentary: 'commentary',
    description: 'audio description',
    caption: 'CC',
  }),
);

/** Gives every stream a unique folder and label. Names in the request take precedence. */
function nameRenditions(chosen: readonly AlignedStream[], defaultLanguage: string | null): PlannedStream[] {
  const folders = new FolderNames();
  const named = chosen.map(({ stream, track }) =>
    track?.name === undefined ? null : folders.take(stream.kind, track.name),
  );
  const labels = new Set<string>();
  const streams = chosen.map((candidate, index): PlannedStream => {
    const { file, stream, route, language, role, isForced, shiftSeconds, fileStartSeconds } = candidate;
    const codec = codecNameOf(stream);
    return {
      file: file.path,
      container: file.container,
      kind: stream.kind,
      id: stream.id,
      indexOfKind: stream.indexOfKind,
      streamIndex: stream.streamIndex,
      codec,
      sourceCodec: stream.codec ?? codec,
      width: stream.width,
      height: stream.height,
      language,
      label: uniqueLabel(labelOf(candidate), `${stream.kind} ${codec}`, labels),
      role,
      isForced,
      folder: named[index] ?? folders.take(stream.kind, nameOf(candidate, codec)),
      route,
      startSeconds: stream.startSeconds,
      shiftSeconds,
      fileStartSeconds,
      undecodableSeconds: stream.undecodableSeconds,
      rotation: stream.rotation,
      durationSeconds: stream.durationSeconds,
    };
  });
  return inPlayersOrder(streams, defaultLanguage);
}

function nameOf({ stream, language }: AlignedStream, codec: string): string {
  if (stream.kind === 'video') return videoName(codec, stream.width, stream.height);
  return stream.kind === 'audio' ? `${language}_${codec}` : language;
}

function labelOf({ stream, language, role, isForced, track }: AlignedStream): string {
  const given = track?.label ?? stream.title ?? '';
  // Quotation marks and commas have a meaning in playlists, and in the packager's arguments.
  const title = given.replaceAll(/[\p{Cc}",]+/gu, ' ');
  const label = title.trim().slice(0, MAX_LABEL_LENGTH);
  if (label !== '') return label;
  const word = isForced ? 'forced' : ROLE_WORDS.get(role ?? '');
  return word === undefined ? languageName(language) : `${languageName(language)} (${word})`;
}

/** Makes a label unique within a group of HLS (RFC 8216 §4.3.4.1.1). */
function uniqueLabel(label: string, group: string, taken: Set<string>): string {
  for (let count = 1; ; count += 1) {
    const candidate = count === 1 ? label : `${label} ${count}`;
    if (taken.has(`${group}\0${candidate}`)) continue;
    taken.add(`${group}\0${candidate}`);
    return candidate;
  }
}

/** Puts the default language first: without other hints, players take the first audio. */
function inPlayersOrder(streams: readonly PlannedStream[], defaultLanguage: string | null): PlannedStream[] {
  const isDefault = ({ kind, language }: PlannedStream): number =>
    kind === 'audio' && language === defaultLanguage ? 0 : 1;
  const ofKind = (kind: string) => streams.filter((stream) => stream.kind === kind);
  const audio = ofKind('audio').sort((first, second) => isDefault(first) - isDefault(second));
  return [...ofKind('video'), ...audio, ...ofKind('text')];
}

/** Short names of codecs, by mediabunny's. */
const CODEC_NAMES: ReadonlyMap<string, string> = new Map([['avc', 'h264']]);

/** Returns the short name of a codec after packaging, as it stands in the name of a rendition. */
function codecNameOf({ kind, codec }: ProbedStream): string {
  if (kind === 'text') return 'vtt';
  if (becomesFlac(codec)) return 'flac';
  return CODEC_NAMES.get(codec ?? '') ?? codec ?? 'unknown';
}

/** Returns `h264_1080p`: sizes are named by the shorter side of the picture. */
function videoName(codec: string, width: number | null, height: number | null): string {
  return width === null || height === null ? codec : `${codec}_${Math.min(width, height)}p`;
}

/** Reserves folder names; a name that is taken gets a number. */
class FolderNames {
  readonly #taken = new Set<string>();

  take(kind: string, name: string): string {
    for (let count = 1; ; count += 1) {
      const folder = `${kind}/${count === 1 ? name : `${name}_${count}`}`;
      if (this.#taken.has(folder.toLowerCase())) continue;
      this.#taken.add(folder.toLowerCase());
      return folder;
    }
  }
}
