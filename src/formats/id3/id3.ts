import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { placeholderDataHash, planDataHash } from '../data-hash.ts';
import { flacStream } from '../flac/flac-stream.ts';
import {
  type EmbeddingPlan,
  type FormatHandler,
  HEAD_SIZE_BYTES,
  LONG_HEAD_SIZE_BYTES,
  type MediaLayout,
} from '../format-handler.ts';
import type { AudioStream } from './audio-stream.ts';
import { mpegAudio } from './mpeg-audio.ts';
import { embedInTag, makeTag, stripTag } from './rewrite-tag.ts';
import { type Id3Tag, readTags } from './tag.ts';
import { parseTagHeader, startsLikeTag, TAG_HEADER_SIZE_BYTES, tagSizeBytes } from './tag-header.ts';

/** How much of the audio is looked at to tell its kind, in bytes. */
const STREAM_HEAD_SIZE_BYTES = 32 * 1024;

/** FLAC comes first: its marker is exact, while MPEG audio is searched for. */
const streams: readonly AudioStream[] = [flacStream, mpegAudio];

/** An audio file behind ID3v2 tags, or behind none. */
export interface Id3Layout extends MediaLayout {
  readonly name: string;
  readonly sizeBytes: number;
  readonly tags: readonly Id3Tag[];
  /** Where the tags end, and the audio or what stands before its first frame begins. */
  readonly audioOffset: number;
  readonly stream: AudioStream;
}

/**
 * Audio whose manifest stands in an ID3v2 tag in front of it, as a general encapsulated object (C2PA 2.2, annex A.3):
 * MP3 and FLAC. One handler for both, since a tag with a large picture hides from the head what follows it.
 */
export const id3: FormatHandler<Id3Layout> = {
  name: 'id3',

  /** Where the tags reach past the head, or are broken, it is claimed, so that `readLayout` can judge or explain. */
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
      mediaType: stream.mediaType,
      extensions: stream.extensions,
      hasVideo: false,
      manifest: first?.manifest ?? null,
      xmp: first?.xmp ?? null,
    };
  },

  placeholderBinding: placeholderDataHash,
  planEmbedding,
};

/** Where the tags at the start of `head` end, or null where that cannot be told from it. */
function endOfTags(head: Uint8Array): number | null {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length);
  let offset = 0;
  while (startsLikeTag(bytes.subarray(offset, offset + TAG_HEADER_SIZE_BYTES))) {
    if (offset + TAG_HEADER_SIZE_BYTES > bytes.length) return null;
    const header = parseTagHeader(bytes.subarray(offset));
    if (header.bodySizeBytes === null) return null;
    offset += tagSizeBytes(header, header.bodySizeBytes);
  }
  const isOutOfSight = offset > 0 && offset + STREAM_HEAD_SIZE_BYTES > HEAD_SIZE_BYTES;
  return isOutOfSight ? null : offset;
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

/** Where there may be one tag only, frames that would hide the manifest from readers of C2PA have nowhere to go. */
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
  const { sizeBytes, audioOffset } = layout;
  const audio: Splice = { kind: 'copy', offset: audioOffset, length: sizeBytes - audioOffset, into: 'flat' };
  // How far the audio moves depends on the size of the tags alone, and that on no offset that is stored in them.
  let newAudioOffset = 0;
  for (const splice of tagSplices(layout, manifestSizeBytes, 0)) newAudioOffset += outputLengthOf(splice);
  const tags = tagSplices(layout, manifestSizeBytes, newAudioOffset - audioOffset);
  // The manifest alone is left out of the hash, its frame's header is not.
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
