import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import {
  type FormatHandler,
  HEAD_SIZE_BYTES,
  LONG_HEAD_SIZE_BYTES,
  type MediaLayout,
  onlyReadableAlone,
} from '../format-handler.ts';
import { type EmbeddingPlan, placeholderDataHash, planDataHash } from '../hard-binding.ts';
import { findFirstFrame, startsFreeFormat } from '../mpeg-audio.ts';
import { beginsWithText } from '../text-beginning.ts';
import { embedInTag, makeTag, stripTag } from './rewrite-tag.ts';
import { type Id3Tag, readTags } from './tag.ts';
import { parseTagHeader, startsLikeTag, TAG_HEADER_SIZE_BYTES, tagSizeBytes } from './tag-structure.ts';

const FLAC_MARKER = 'fLaC';
const BLOCK_HEADER_SIZE_BYTES = 4;
/** Size of STREAMINFO, the first metadata block of every FLAC stream (RFC 9639, §8.2). */
const STREAMINFO_SIZE_BYTES = 34;
/** Smallest block size that STREAMINFO may state, in samples. */
const MIN_BLOCK_SIZE = 16;
/** Number of audio bytes that are read to tell its kind. */
const STREAM_HEAD_SIZE_BYTES = 32 * 1024;

/** Kind of audio stream that may follow an ID3v2 tag. */
interface AudioStream {
  /** Name in error messages. */
  readonly name: string;
  readonly mediaType: string;
  readonly extensions: readonly [string, ...string[]];
  /** True where C2PA readers accept further tags between the first one and the audio. */
  readonly allowsSeveralTags: boolean;
  /** True where C2PA readers find the audio behind a tag with a footer. */
  readonly allowsFooter: boolean;
  /** Tells whether `head`, the first bytes behind the tags, starts like this kind. */
  matches(head: Uint8Array): boolean;
  /** Throws an AppError for a stream that starts like this kind but is invalid. */
  check(source: ByteSource, offset: number, head: Buffer): void;
}

/** FLAC (RFC 9639). C2PA readers find its manifest in an ID3v2 tag in front of the stream (C2PA 2.2, annex A.3). */
const flacStream: AudioStream = {
  name: 'FLAC',
  mediaType: 'audio/flac',
  extensions: ['flac'],
  allowsSeveralTags: false,
  allowsFooter: false,
  matches: (head) => Buffer.from(head.subarray(0, FLAC_MARKER.length)).toString('latin1') === FLAC_MARKER,
  check(source, offset, head) {
    const problem = problemOfStreamInfo(head.subarray(FLAC_MARKER.length));
    if (problem !== null) throw new AppError('FLAC_STREAMINFO_INVALID', { name: source.name, offset, problem });
  },
};

/** MPEG audio, usually layer III (MP3). AAC in ADTS has the same sync word but layer 0, so it does not match. */
const mpegAudio: AudioStream = {
  name: 'MPEG audio',
  mediaType: 'audio/mpeg',
  extensions: ['mp3', 'mp2', 'mpga'],
  allowsSeveralTags: true,
  allowsFooter: true,
  matches: (head) => startsFreeFormat(head) || findFirstFrame(head) !== null,
  check: () => undefined,
};

/** Kinds of audio. FLAC comes first: its marker is exact, while MPEG audio is searched for. */
const streams: readonly AudioStream[] = [flacStream, mpegAudio];

/** Layout of an audio file, with or without ID3v2 tags. */
interface Id3Layout extends MediaLayout {
  readonly name: string;
  readonly sizeBytes: number;
  readonly tags: readonly Id3Tag[];
  /** End of the tags, where the audio starts, or garbage before its first frame. */
  readonly audioOffset: number;
  readonly stream: AudioStream;
  readonly startsLikeText: boolean;
}

/**
 * Handler for audio with its manifest in a GEOB frame of an ID3v2 tag in front of it (C2PA 2.2, annex A.3): MP3 and
 * FLAC. One handler serves both, because a tag with a large picture fills the head, so that the kind of audio is not
 * visible in it.
 */
export const id3: FormatHandler<Id3Layout> = {
  name: 'id3',
  containers: ['MP3', 'FLAC'],
  mediaType: 'audio/mpeg',
  nameExtensions: { audio: ['mp3', 'flac'], video: [], either: [] },

  /**
   * Matches also where the tags extend past the head or are invalid, so that `readLayout` decides, or
   * explains the refusal.
   */
  matches(head) {
    const audioOffset = endOfTags(head);
    if (audioOffset === null) return true;
    return streams.some((stream) => stream.matches(head.subarray(audioOffset)));
  },

  async readLayout(source, signal) {
    const tags = await readTags(source, signal);
    const audioOffset = tags.at(-1)?.endOffset ?? 0;
    const stream = await readStream(source, audioOffset, signal);
    const [first] = tags;
    if (!stream.allowsSeveralTags) requireOneTag(source, tags, stream);
    return {
      name: source.name,
      sizeBytes: source.sizeBytes,
      tags,
      audioOffset,
      stream,
      startsLikeText: await beginsWithText(source, signal),
      mediaType: stream.mediaType,
      extensions: stream.extensions,
      hasVideo: false,
      manifest: first?.manifest ?? null,
      elements: onlyReadableAlone(tags.flatMap(({ elements }) => elements)),
      xmp: first?.xmp ?? null,
    };
  },

  placeholderBinding: placeholderDataHash,
  planEmbedding,
};

/** Returns the end of the tags at the start of `head`, or null where it is not in `head`. */
function endOfTags(head: Uint8Array): number | null {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length);
  let offset = 0;
  while (startsLikeTag(bytes.subarray(offset, offset + TAG_HEADER_SIZE_BYTES))) {
    if (offset + TAG_HEADER_SIZE_BYTES > bytes.length) return null;
    const header = parseTagHeader(bytes.subarray(offset));
    if (header.bodySizeBytes === null) return null;
    offset += tagSizeBytes(header, header.bodySizeBytes);
  }
  const isPastHead = offset > 0 && offset + STREAM_HEAD_SIZE_BYTES > HEAD_SIZE_BYTES;
  return isPastHead ? null : offset;
}

async function readStream(source: ByteSource, audioOffset: number, signal: AbortSignal): Promise<AudioStream> {
  const audioSizeBytes = source.sizeBytes - audioOffset;
  for (const headSizeBytes of [STREAM_HEAD_SIZE_BYTES, LONG_HEAD_SIZE_BYTES]) {
    const head = await readRange(source, audioOffset, Math.min(headSizeBytes, audioSizeBytes), signal);
    const stream = streams.find((candidate) => candidate.matches(head));
    stream?.check(source, audioOffset, head);
    if (stream !== undefined) return stream;
  }
  throw new AppError('AUDIO_STREAM_UNKNOWN', { name: source.name, offset: audioOffset });
}

/** Throws `ID3_SEVERAL_TAGS`, or `ID3_FRAME_UNREADABLE` for frames that would need a second tag. */
function requireOneTag({ name }: ByteSource, [first, second]: readonly Id3Tag[], stream: AudioStream): void {
  if (second !== undefined) {
    throw new AppError('ID3_SEVERAL_TAGS', { name, offset: second.offset, container: stream.name });
  }
  for (const [frame, feature] of first?.unreadableFrames ?? []) {
    const offset = first?.body.sourceOffset(frame.position) ?? 0;
    throw new AppError('ID3_FRAME_UNREADABLE', { name, frameId: frame.id, offset, feature });
  }
}

function planEmbedding(layout: Id3Layout, manifestSizeBytes: number): EmbeddingPlan {
  const { name, sizeBytes, audioOffset } = layout;
  if (layout.startsLikeText) throw new AppError('ID3_AUDIO_BEHIND_TEXT', { name, offset: audioOffset });
  const audio: Splice = { kind: 'copy', offset: audioOffset, length: sizeBytes - audioOffset, into: 'flat' };
  // The shift of the audio depends on the size of the tags, which does not depend on the offsets stored in them.
  let newAudioOffset = 0;
  for (const splice of tagSplices(layout, manifestSizeBytes, 0)) newAudioOffset += outputLengthOf(splice);
  const tags = tagSplices(layout, manifestSizeBytes, newAudioOffset - audioOffset);
  // The hash excludes the manifest only, not the header of its frame.
  return planDataHash([...tags, audio], 0);
}

function tagSplices(layout: Id3Layout, manifestSizeBytes: number, shiftBytes: number): Splice[] {
  const { name, tags, stream, audioOffset } = layout;
  const [first, ...others] = tags;
  const move = { audioOffset, shiftBytes };
  if (first === undefined) return makeTag(name, manifestSizeBytes);
  return [
    ...embedInTag(name, first, { manifestSizeBytes, keepsFooter: stream.allowsFooter, move }),
    ...others.flatMap((tag) => stripTag(name, tag, move)),
  ];
}

/** Returns the problem of the metadata block behind the marker, as part of a sentence, or null. */
function problemOfStreamInfo(block: Buffer): string | null {
  if (block.length < BLOCK_HEADER_SIZE_BYTES + STREAMINFO_SIZE_BYTES) return 'the file ends inside it';
  const type = block.readUInt8(0) & 0x7f;
  const sizeBytes = block.readUIntBE(1, 3);
  if (type !== 0) return `the first block is of type ${type}`;
  if (sizeBytes !== STREAMINFO_SIZE_BYTES)
    return `it states a size of ${sizeBytes} instead of ${STREAMINFO_SIZE_BYTES}`;
  const minBlockSize = block.readUInt16BE(4);
  const maxBlockSize = block.readUInt16BE(6);
  const sampleRate = block.readUIntBE(14, 3) >> 4;
  if (minBlockSize < MIN_BLOCK_SIZE || maxBlockSize < minBlockSize) return 'its block sizes are out of range';
  return sampleRate === 0 ? 'its sample rate is 0' : null;
}
