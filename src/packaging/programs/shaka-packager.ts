import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isExecutable } from '#processes/find-program.ts';
import type { PackagingPlan, PlannedStream } from '../packaging-plan.ts';
import { UNKNOWN_LANGUAGE } from '../planning/languages.ts';
import { describeExit, type ProgramExit, TERMINATION_SIGNALS } from './run-programs.ts';

/** I/O buffer of the packager for every file, in bytes: its default of 32 MiB makes it slower and larger. */
const IO_CACHE_BYTES = 1024 * 1024;

/** Template of segment names in a rendition's folder, in the packager's syntax. */
const SEGMENT_NAME = '$Number%05d$';

/** File or named pipe that the packager reads a stream from. */
interface StreamInput {
  readonly path: string;
  /** `video`, `audio`, `text`, or the index of the stream among those of audio and video. */
  readonly selector: string;
}

/** A planned stream with the input that the packager reads it from. */
export interface RoutedStream {
  readonly stream: PlannedStream;
  readonly input: StreamInput;
}

/**
 * Returns the packager's arguments. HLS is always written, because its playlists hold the duration of every segment,
 * which is checked afterwards. `target` is the output folder.
 */
export function shakaArguments(plan: PackagingPlan, streams: readonly RoutedStream[], target: string): string[] {
  const { segmentSeconds, formats, hlsName, dashName, defaultLanguage, defaultTextLanguage } = plan;
  return [
    '--quiet',
    `--io_cache_size=${IO_CACHE_BYTES}`,
    // Without a segment index, no offset changes when a manifest box is inserted before the fragment.
    '--generate_sidx_in_media_segments=false',
    '--generate_static_live_mpd',
    // Otherwise Dolby Vision over HEVC, as phones record it, is wrongly listed as two representations of the same files.
    '--use_dovi_supplemental_codecs',
    `--segment_duration=${segmentSeconds}`,
    `--default_language=${languageField(defaultLanguage) ?? ''}`,
    // Empty, it would be the default language of audio.
    `--default_text_language=${defaultTextLanguage ?? 'zxx'}`,
    `--hls_master_playlist_output=${target}/${hlsName}`,
    ...(formats.includes('dash') ? [`--mpd_output=${target}/${dashName}`] : []),
    ...streams.flatMap(({ stream, input }) => descriptorsOf(stream, input, plan, target)),
  ];
}

/** Returns the language as the packager takes it, which is every tag but `und`. */
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
      // The packager gives this role to all audio of a default language that it knows.
      ...(untaggedDefaults(plan).includes(stream) && { dash_roles: 'main' }),
      ...rolesOf(stream),
    }),
  ];
}

/** Describes one text stream twice: HLS takes WebVTT as it is, DASH in MP4. */
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

/** Characteristics in HLS of some roles (Apple's HLS authoring specification, section 4). */
const CHARACTERISTICS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    description: 'public.accessibility.describes-video',
    caption: 'public.accessibility.transcribes-spoken-dialog;public.accessibility.describes-music-and-sound',
  }),
);

function rolesOf({ role, kind }: PlannedStream): Fields {
  if (role === null) return {};
  return { dash_roles: role, hls_characteristics: kind === 'video' ? null : (CHARACTERISTICS.get(role) ?? null) };
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

/**
 * Marks the default audio in the multivariant playlist where its file states no language: the packager marks languages,
 * and `und` is none to it. Each codec is a group of its own, with a default of its own (RFC 8216 §4.3.4.1.1).
 */
export async function markDefaults(path: string, plan: PackagingPlan): Promise<void> {
  const folders = untaggedDefaults(plan).map(({ folder }) => folder);
  if (folders.length === 0) return;
  const lines = (await readFile(path, 'utf8')).split('\n').map((line) => {
    const isDefault = folders.some((folder) => line.includes(`URI="${folder}/index.m3u8"`));
    return isDefault && line.startsWith('#EXT-X-MEDIA:TYPE=AUDIO') ? line.replace(',DEFAULT=NO', ',DEFAULT=YES') : line;
  });
  await writeFile(path, lines.join('\n'));
}

/** Returns the default audio of each codec where that has no known language. */
function untaggedDefaults({ streams, defaultLanguage }: PackagingPlan): PlannedStream[] {
  if (defaultLanguage !== UNKNOWN_LANGUAGE) return [];
  const untagged = streams.filter(({ kind, language }) => kind === 'audio' && language === UNKNOWN_LANGUAGE);
  const groups = Map.groupBy(untagged, ({ codec }) => codec);
  return [...groups.values()].flatMap((group) => group.find(({ role }) => role !== 'description') ?? []);
}

/** Names of platforms in the packager's npm package. */
const PLATFORMS: Readonly<Partial<Record<NodeJS.Platform, string>>> = { linux: 'linux', darwin: 'osx', win32: 'win' };

/**
 * Returns the path of the packager's own program. The entry point of its package is not used, because it always exits with
 * 0. Throws `PACKAGER_MISSING` where there is none for this platform.
 */
export function findPackager(): string {
  const platform = `${PLATFORMS[process.platform] ?? process.platform}-${process.arch}`;
  const folder = dirname(createRequire(import.meta.url).resolve('shaka-packager/package.json'));
  const path = join(folder, 'bin', `packager-${platform}${process.platform === 'win32' ? '.exe' : ''}`);
  if (!isExecutable(path)) throw new AppError('PACKAGER_MISSING', { path, platform });
  return path;
}

/** Next segment of one rendition. */
interface WatchedRendition {
  readonly folder: string;
  nextNumber: number;
}

/**
 * Follows the packager by the segments that appear, because it reports no progress. A segment is complete when the one
 * after it exists; `wrote` is called then with its path, relative to the output.
 */
export class SegmentWatcher {
  readonly #target: string;
  readonly #renditions: readonly WatchedRendition[];
  readonly #wrote: (path: string) => void;
  #bytes = 0;

  constructor({ streams }: PackagingPlan, target: string, wrote: (path: string) => void) {
    this.#target = target;
    this.#wrote = wrote;
    this.#renditions = streams.filter(({ kind }) => kind !== 'text').map(({ folder }) => ({ folder, nextNumber: 1 }));
  }

  /** Checks for new segments and returns the bytes of all that have appeared. */
  poll(): number {
    for (const rendition of this.#renditions) this.#pollRendition(rendition);
    return this.#bytes;
  }

  #pollRendition(rendition: WatchedRendition): void {
    const { folder } = rendition;
    for (;;) {
      const stats = statSync(join(this.#target, segmentPath(folder, rendition.nextNumber)), { throwIfNoEntry: false });
      if (stats === undefined) return;
      this.#bytes += stats.size;
      if (rendition.nextNumber > 1) this.#wrote(segmentPath(folder, rendition.nextNumber - 1));
      rendition.nextNumber += 1;
    }
  }
}

function segmentPath(folder: string, number: number): string {
  return `${folder}/${String(number).padStart(5, '0')}.m4s`;
}

/** Causes by the packager's error codes, as the end of a sentence. */
const PACKAGER_PROBLEMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    INVALID_ARGUMENT: 'it holds no stream where one was found before',
    UNIMPLEMENTED: 'the packager does not read this kind of file',
    FILE_FAILURE: 'a file could not be read or written',
    END_OF_STREAM: 'it ends before its first frame',
    PARSER_FAILURE:
      'its packets cannot be parsed; the file is damaged, or uses a feature that the packager does not know',
    MUXER_FAILURE: 'its packets cannot be written as fragmented MP4',
    TRIVIAL: 'it holds nothing that can be packaged',
  }),
);

/** Exit code of the packager for arguments that it does not know, which is a bug of ours. */
const BAD_ARGUMENTS = 1;

/** Returns the error for a failed run of the packager. `names` maps the names of its inputs to source files. */
export function packagerError(exit: ProgramExit, names: ReadonlyMap<string, string>): Error {
  if (TERMINATION_SIGNALS.has(exit.signal)) return new AppError('PROGRAM_TOLD_TO_END', { program: 'The packager' });
  if (exit.code === BAD_ARGUMENTS) return new Error(`the packager does not take its arguments: ${exit.errorText}`);
  const [, code = ''] = /Packaging Error: \d+ \(([A-Z_]+)\)/.exec(exit.errorText) ?? [];
  const [input = ''] = /\b(?:source-\d+|feed-\d+|text-\d+\.vtt)/.exec(exit.errorText) ?? [];
  const problem = PACKAGER_PROBLEMS.get(code) ?? describeExit(exit);
  return new AppError('PACKAGER_FAILED', { file: names.get(input) ?? onlyFile(names), problem });
}

/** Returns the file where there is only one: the packager does not always name the input that it failed on. */
function onlyFile(names: ReadonlyMap<string, string>): string | null {
  const [file, ...others] = new Set(names.values());
  return file !== undefined && others.length === 0 ? file : null;
}
