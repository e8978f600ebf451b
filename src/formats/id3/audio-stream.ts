import type { ByteSource } from '#bytes/byte-source.ts';

/** A kind of audio that may stand behind an ID3v2 tag. */
export interface AudioStream {
  /** As errors call it. */
  readonly name: string;
  readonly mediaType: string;
  readonly extensions: readonly [string, ...string[]];
  /** Whether readers of C2PA accept further tags between the first and the audio. */
  readonly allowsSeveralTags: boolean;
  /** Whether readers of C2PA find the audio behind a tag that ends with a footer. */
  readonly allowsFooter: boolean;
  /** Whether `head`, the first bytes behind the tags, starts like this kind. */
  matches(head: Uint8Array): boolean;
  /** Refuses, with an AppError, a stream that starts like this kind and is none. */
  check(source: ByteSource, offset: number, head: Buffer): void;
}
