import type { Warning } from '#errors/warning.ts';

/** Containers that probing distinguishes. */
export type ContainerKind =
  | 'mp4'
  | 'quicktime'
  | 'matroska'
  | 'webm'
  | 'mpeg-ts'
  | 'mp3'
  | 'wave'
  | 'ogg'
  | 'adts'
  | 'flac'
  | 'ac3'
  | 'vtt'
  | 'srt'
  | 'ttml';

/** `picture`: a cover in a track of its own, which containers list as video. It is never packaged. */
type StreamKind = 'video' | 'audio' | 'text' | 'picture';

/** Result of probing one file. */
export interface ProbedFile {
  readonly path: string;
  readonly container: ContainerKind;
  /** Streams in the order of the file; text last. */
  readonly streams: readonly ProbedStream[];
  /** Nouns for everything else in it, such as data tracks. */
  readonly others: readonly string[];
  /** Warnings about a file that can be packaged all the same. */
  readonly warnings: readonly Warning[];
}

export interface ProbedStream {
  readonly kind: StreamKind;
  /** ID of the stream in its container, in MPEG-TS its PID. */
  readonly id: number;
  /** Index among the file's streams of this kind, from zero, as ffmpeg counts. Pictures count as video. */
  readonly indexOfKind: number;
  /** Index among the file's audio and video streams, from zero, as the packager counts. */
  readonly streamIndex: number;
  /** `avc`, `hevc`, `aac`, `pcm-s16`, `mov_text` and so on; null where it is unknown. */
  readonly codec: string | null;
  /** Container's name of the codec: `mp4v`, `V_MPEG4/ISO/AVC`. */
  readonly codecId: string | null;
  /** Language as the container states it; null where it states none. */
  readonly language: string | null;
  readonly title: string | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly channels: number | null;
  /** Audio samples per second; null for other streams, and where it was not read. */
  readonly sampleRate: number | null;
  /** Bits per sample of FLAC; null for everything else. */
  readonly bitsPerSample: number | null;
  /** Time of the first packet, in seconds; below zero where an edit list hides packets. */
  readonly startSeconds: number;
  /** Duration without the start, in seconds; null where the file does not state it. */
  readonly durationSeconds: number | null;
  /** Duration before the first key frame, in seconds: nothing can decode it, and it is not packaged. */
  readonly undecodableSeconds: number;
  /** Rotation that players apply to the picture, clockwise and in degrees. */
  readonly rotation: number;
  /** Time zero of a subtitle file on the timeline of the media, in seconds; null where nothing states it. */
  readonly zeroSeconds: number | null;
  readonly isForced: boolean;
  readonly isCommentary: boolean;
  readonly isForHearingImpaired: boolean;
  readonly isForVisuallyImpaired: boolean;
}

/** Defaults of a stream whose packets are not read. */
export const STREAM_DEFAULTS = {
  id: 0,
  streamIndex: 0,
  codecId: null,
  language: null,
  title: null,
  width: null,
  height: null,
  channels: null,
  sampleRate: null,
  bitsPerSample: null,
  startSeconds: 0,
  durationSeconds: null,
  undecodableSeconds: 0,
  rotation: 0,
  zeroSeconds: null,
  isForced: false,
  isCommentary: false,
  isForHearingImpaired: false,
  isForVisuallyImpaired: false,
};

/** File that cannot be packaged: not media, or broken. */
export interface UnusableFile {
  readonly path: string;
  /** `not-media`: neither its bytes nor its name say that it is media; `broken`: one of them does. */
  readonly kind: 'not-media' | 'broken';
  /** End of the sentence `"<path>" …`. */
  readonly problem: string;
}

/** Thrown for media that cannot be read; its message ends the sentence `"<path>" …`. */
export class BrokenMedia extends Error {
  override readonly name = 'BrokenMedia';
}

/** Result of probing a folder. */
export interface ProbedFolder {
  /** Name of the folder, for messages. */
  readonly name: string;
  readonly files: readonly ProbedFile[];
  readonly unusable: readonly UnusableFile[];
  /** Paths of files that are known to share one timeline. */
  readonly sharedTimeline: ReadonlySet<string>;
}
