import type { Warning } from '#errors/warning.ts';

/** The containers that are told apart. */
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

export type StreamKind = 'video' | 'audio' | 'text';

/** What one file of a folder turned out to hold. */
export interface ProbedFile {
  readonly path: string;
  readonly container: ContainerKind;
  /** In the order of the file; streams of text last. */
  readonly streams: readonly ProbedStream[];
  /** What else is in it, such as data tracks, each as a noun for people. */
  readonly others: readonly string[];
  /** What is doubtful about it although it can be packaged. */
  readonly warnings: readonly Warning[];
}

export interface ProbedStream {
  readonly kind: StreamKind;
  /** What the container calls the stream: of MPEG-TS its PID. */
  readonly id: number;
  /** Counts the file's streams of this kind, from zero. */
  readonly indexOfKind: number;
  /** Counts the file's streams of audio and video, from zero. */
  readonly streamIndex: number;
  /** `avc`, `hevc`, `aac`, `pcm-s16`, `mov_text` and so on; null where it is none that is known. */
  readonly codec: string | null;
  /** What the container calls the codec: `mp4v`, `V_MPEG4/ISO/AVC`. */
  readonly codecId: string | null;
  /** As the container says it; null where it says nothing. */
  readonly language: string | null;
  readonly title: string | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly channels: number | null;
  /** Samples of sound a second; null of other streams, and where nobody has looked. */
  readonly sampleRate: number | null;
  /** Of FLAC; null of everything else. */
  readonly bitsPerSample: number | null;
  readonly startSeconds: number;
  /** How long it plays, without its start; null where the file does not say. */
  readonly durationSeconds: number | null;
  /** What comes before the first key frame, in seconds: nobody can decode it, and it is packaged by nobody. */
  readonly undecodableSeconds: number;
  /** How players turn the picture before they show it, clockwise and in degrees. */
  readonly rotation: number;
  /** Where the time zero of subtitles in a file of their own stands in the time of the media; null where nothing says so. */
  readonly zeroSeconds: number | null;
  readonly isForced: boolean;
  readonly isCommentary: boolean;
  readonly isForHearingImpaired: boolean;
  readonly isForVisuallyImpaired: boolean;
}

/** What is not known of a stream whose packets nobody has looked at. */
export const NO_DETAILS = {
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

/** What a file is that cannot be packaged: none that is media at all, or one that is broken. */
export interface UnusableFile {
  readonly path: string;
  /** `not-media`: nothing says that it is media, neither its bytes nor its name; `broken`: something does. */
  readonly kind: 'not-media' | 'broken';
  /** Ends the sentence `"<path>" …`. */
  readonly problem: string;
}
