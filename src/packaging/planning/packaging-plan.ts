import type { Warning } from '#errors/warning.ts';
import type { ContainerKind, StreamKind } from '../probing/probed-file.ts';

/**
 * What becomes of a folder of media, decided before anything is written. Plans are pure data: `planPackaging` makes
 * them from what probing found; `shakaArguments` and `feedArguments` turn them into arguments of programs.
 */
export interface PackagingPlan extends PublicationShape {
  /** At least one; video first, the tallest first, then audio, then text. */
  readonly streams: readonly PlannedStream[];
  readonly leftOut: readonly LeftOut[];
  /** What the caller should know of an output that is made all the same: everything that is lost or doubtful. */
  readonly warnings: readonly Warning[];
}

/** What the request says of the publication as a whole, with its defaults. */
export interface PublicationShape {
  readonly segmentSeconds: number;
  readonly formats: readonly PublicationFormat[];
  readonly hlsName: string;
  readonly dashName: string;
  readonly defaultLanguage: string | null;
  readonly iFramePlaylists: boolean;
}

export type PublicationFormat = 'hls' | 'dash';

/** One stream of a file, and the rendition that it becomes. */
export interface PlannedStream {
  /** The path of the file in the folder. */
  readonly file: string;
  readonly container: ContainerKind;
  readonly kind: StreamKind;
  /** What the container calls the stream: of MPEG-TS its PID. */
  readonly id: number;
  /** Counts the file's streams of this kind, from zero, as ffmpeg does. */
  readonly indexOfKind: number;
  /** Counts the file's streams of audio and video, from zero, as the packager does. */
  readonly streamIndex: number;
  /** A short name, such as `h264`, `aac` or `vtt`. */
  readonly codec: string;
  /** What the file has it in, by mediabunny's name: `avc`, `pcm-s24`. */
  readonly sourceCodec: string;
  readonly width: number | null;
  readonly height: number | null;
  /** BCP 47; `und` where nobody knows. Of video it plays no part. */
  readonly language: string;
  readonly label: string;
  /** As DASH names it (urn:mpeg:dash:role:2011). */
  readonly role: string | null;
  readonly isForced: boolean;
  /** The rendition's folder, relative to the output: `video/h264_1080p`. */
  readonly folder: string;
  readonly route: Route;
  /** Where its first packet stands in the file's time; below zero where an edit list hides packets. */
  readonly startSeconds: number;
  /** What is added to its times, so that the publication starts at zero. */
  readonly shiftSeconds: number;
  /** Where what its file starts with comes to stand in the publication, in seconds. */
  readonly fileStartSeconds: number;
  /** What comes before the first key frame, and is left out, in seconds. */
  readonly undecodableSeconds: number;
  /** How the file wants the picture turned, clockwise and in degrees. */
  readonly rotation: number;
  /** How long it plays; null where the file does not say. */
  readonly durationSeconds: number | null;
}

/**
 * How a stream reaches the packager: `direct`, it reads the file itself; `feed`, ffmpeg puts the packets into a container
 * that the packager takes, as they are or, of raw samples, as FLAC; `text`, it is written anew as WebVTT, read by ffmpeg or
 * by our own readers of files of subtitles, of Matroska and of MP4.
 */
export type Route =
  | { readonly kind: 'direct' }
  | { readonly kind: 'feed'; readonly into: 'mp4' | 'mpegts'; readonly packets: 'as-they-are' | 'flac' }
  | { readonly kind: 'text'; readonly reader: 'file' | 'matroska' | 'mp4' | 'ffmpeg' };

/** Something that does not reach the output, and why, as the end of a sentence. */
export interface LeftOut {
  readonly file: string;
  /** A noun: `the second video track`. */
  readonly what: string;
  readonly reason: string;
}
