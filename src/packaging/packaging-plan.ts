import type { Warning } from '#errors/warning.ts';
import type { ContainerKind, ProbedStream } from './probed-file.ts';

/**
 * Plan of a publication, made before anything is written. Plans are pure data: `planPackaging` makes them from the results
 * of probing; `shakaArguments` and `feedsOf` turn them into arguments of programs.
 */
export interface PackagingPlan extends PublicationShape {
  /** At least one; video first, the tallest first, then audio, then text. */
  readonly streams: readonly PlannedStream[];
  readonly leftOut: readonly LeftOut[];
  /** Warnings about an output that is made all the same: everything that is lost or doubtful. */
  readonly warnings: readonly Warning[];
}

/** Settings of the whole publication, with their defaults. */
export interface PublicationShape extends DefaultLanguages {
  readonly segmentSeconds: number;
  readonly formats: readonly PublicationFormat[];
  readonly hlsName: string;
  readonly dashName: string;
  readonly iFramePlaylists: boolean;
}

/** Languages that players choose where the viewer has not. */
export interface DefaultLanguages {
  /** Language of the default audio; `und` where its file does not state one, null where there is no audio. */
  readonly defaultLanguage: string | null;
  /** Language of the subtitles that are shown; null for none. */
  readonly defaultTextLanguage: string | null;
}

type PublicationFormat = 'hls' | 'dash';

/** One stream of a file, and the rendition that it becomes. */
export interface PlannedStream
  extends Pick<ProbedStream, 'kind' | 'id' | 'indexOfKind' | 'streamIndex' | 'width' | 'height'>,
    Pick<ProbedStream, 'startSeconds' | 'undecodableSeconds' | 'rotation' | 'durationSeconds'> {
  /** Path of the file in the folder. */
  readonly file: string;
  readonly container: ContainerKind;
  /** Short name, such as `h264`, `aac` or `vtt`. */
  readonly codec: string;
  /** Codec in the source file, by mediabunny's name: `avc`, `pcm-s24`. */
  readonly sourceCodec: string;
  /** BCP 47; `und` where it is unknown. Not used for video. */
  readonly language: string;
  readonly label: string;
  /** Role in DASH (urn:mpeg:dash:role:2011). */
  readonly role: string | null;
  readonly isForced: boolean;
  /** Folder of the rendition, relative to the output: `video/h264_1080p`. */
  readonly folder: string;
  readonly route: Route;
  /** Seconds added to its times, so that the publication starts at zero. */
  readonly shiftSeconds: number;
  /** Time at which the first packet of its file stands in the publication, in seconds. */
  readonly fileStartSeconds: number;
}

/**
 * Route of a stream to the packager. `direct`: it reads the file itself. `feed`: ffmpeg remuxes the packets into a
 * container that the packager reads, raw samples as FLAC. `text`: subtitles are rewritten as WebVTT, read by ffmpeg or by
 * our own readers of subtitle files, Matroska and MP4.
 */
export type Route =
  | { readonly kind: 'direct' }
  | { readonly kind: 'feed'; readonly into: 'mp4' | 'mpegts'; readonly packets: 'as-they-are' | 'flac' }
  | { readonly kind: 'text'; readonly reader: 'file' | 'matroska' | 'mp4' | 'ffmpeg' };

/** Stream that is left out, with the reason as the end of a sentence. */
export interface LeftOut {
  readonly file: string;
  /** Noun: `the second video track`. */
  readonly what: string;
  readonly reason: string;
}

/** Returns the paths of the playlists that the packager writes. */
export function playlistPathsOf({ streams, formats, hlsName, dashName, iFramePlaylists }: PackagingPlan): string[] {
  const media = streams.map(({ folder }) => `${folder}/index.m3u8`);
  const video = iFramePlaylists ? streams.filter(({ kind }) => kind === 'video') : [];
  const frames = video.map(({ folder }) => `${folder}/iframes.m3u8`);
  return [hlsName, ...(formats.includes('dash') ? [dashName] : []), ...media, ...frames];
}
