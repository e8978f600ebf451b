import assert from 'node:assert/strict';
import { UNKNOWN_LANGUAGE } from '../planning/languages.ts';
import type { PackagingPlan, PlannedStream } from '../planning/packaging-plan.ts';

/** What the packager keeps of every file it reads or writes, in bytes: its own 32 MiB make it slower, and larger. */
const CACHE_BYTES = 1024 * 1024;

/** Names of segments within a rendition's folder. */
const SEGMENT_NAME = '$Number%05d$';

/** Where the packager reads a stream. */
export interface StreamInput {
  readonly path: string;
  /** `video`, `audio`, `text`, or the number of the stream among those of audio and video. */
  readonly selector: string;
}

/** A stream and where it is read. */
export interface ReadStream {
  readonly stream: PlannedStream;
  readonly input: StreamInput;
}

/**
 * The packager's arguments. HLS is written always: its playlists say how long every segment is, which is checked
 * afterwards. `target` is the output folder.
 */
export function shakaArguments(plan: PackagingPlan, streams: readonly ReadStream[], target: string): string[] {
  const { segmentSeconds, formats, hlsName, dashName, defaultLanguage } = plan;
  return [
    '--quiet',
    `--io_cache_size=${CACHE_BYTES}`,
    // Without a segment index nothing moves when a manifest box goes before the fragment.
    '--generate_sidx_in_media_segments=false',
    '--generate_static_live_mpd',
    // Else Dolby Vision over HEVC, as phones record it, is listed as two representations of the same files, wrongly.
    '--use_dovi_supplemental_codecs',
    `--segment_duration=${segmentSeconds}`,
    `--default_language=${languageField(defaultLanguage) ?? ''}`,
    `--default_text_language=${defaultTextLanguage(plan)}`,
    `--hls_master_playlist_output=${target}/${hlsName}`,
    ...(formats.includes('dash') ? [`--mpd_output=${target}/${dashName}`] : []),
    ...streams.flatMap(({ stream, input }) => descriptorsOf(stream, input, plan, target)),
  ];
}

/** No language: subtitles are shown to those who ask for them, unless the default language is heard nowhere. */
function defaultTextLanguage({ streams, defaultLanguage }: PackagingPlan): string {
  const isHeard = streams.some(({ kind, language }) => kind === 'audio' && language === defaultLanguage);
  return defaultLanguage === null || isHeard ? 'zxx' : defaultLanguage;
}

/** The packager takes every tag but the one for no language that is known. */
function languageField(language: string | null): string | null {
  return language === UNKNOWN_LANGUAGE ? null : language;
}

type Fields = Readonly<Record<string, string | null>>;

function descriptorsOf(stream: PlannedStream, input: StreamInput, plan: PackagingPlan, target: string): string[] {
  if (stream.kind === 'text') return textDescriptors(stream, input, plan, target);
  const { folder, kind, codec } = stream;
  return [
    descriptor({
      in: input.path,
      stream: input.selector,
      init_segment: `${target}/${folder}/init.mp4`,
      segment_template: `${target}/${folder}/${SEGMENT_NAME}.m4s`,
      playlist_name: `${folder}/index.m3u8`,
      iframe_playlist_name: kind === 'video' && plan.iFramePlaylists ? `${folder}/iframes.m3u8` : null,
      ...(kind === 'audio' && {
        lang: languageField(stream.language),
        // A group for each codec: the variants of one group name the codecs of all.
        hls_group_id: `audio-${codec}`,
        hls_name: stream.label,
      }),
      ...rolesOf(stream),
    }),
  ];
}

/** HLS takes WebVTT as it is, DASH in MP4. */
function textDescriptors(
  stream: PlannedStream,
  input: StreamInput,
  { formats }: PackagingPlan,
  target: string,
): string[] {
  const { folder, language, label, isForced } = stream;
  const common = {
    in: input.path,
    stream: 'text',
    lang: languageField(language),
    forced_subtitle: isForced ? '1' : null,
  };
  const hls = descriptor({
    ...common,
    segment_template: `${target}/${folder}/${SEGMENT_NAME}.vtt`,
    playlist_name: `${folder}/index.m3u8`,
    hls_group_id: 'text',
    hls_name: label,
    hls_only: '1',
    ...rolesOf(stream),
  });
  if (!formats.includes('dash')) return [hls];
  const dash = descriptor({
    ...common,
    init_segment: `${target}/${folder}/init.mp4`,
    segment_template: `${target}/${folder}/${SEGMENT_NAME}.m4s`,
    dash_only: '1',
    ...rolesOf(stream),
  });
  return [hls, dash];
}

/** What HLS has for some of the roles (Apple's HLS authoring specification, section 4). */
const CHARACTERISTICS: Readonly<Record<string, string>> = {
  description: 'public.accessibility.describes-video',
  caption: 'public.accessibility.transcribes-spoken-dialog;public.accessibility.describes-music-and-sound',
};

function rolesOf({ role, kind }: PlannedStream): Fields {
  if (role === null) return {};
  return { dash_roles: role, hls_characteristics: kind === 'video' ? null : (CHARACTERISTICS[role] ?? null) };
}

function descriptor(fields: Fields): string {
  return Object.entries(fields)
    .filter((field): field is [string, string] => field[1] !== null)
    .map(([name, value]) => {
      assert(!value.includes(','), `the field ${name} holds no comma`);
      return `${name}=${value}`;
    })
    .join(',');
}
