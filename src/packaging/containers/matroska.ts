import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { childrenOf, elementAt, MAX_HEADER_BYTES, unsignedOf } from '#formats/ebml.ts';
import { BrokenMedia } from '../probed-file.ts';
import type { OtherTracks } from './mp4-tracks.ts';

/** IDs of Matroska elements (RFC 9559 §5.1). */
export const SEGMENT = 0x18538067;
export const CLUSTER = 0x1f43b675;
export const TRACKS = 0x1654ae6b;
const ATTACHMENTS = 0x1941a469;
const TRACK_ENTRY = 0xae;
const TRACK_NUMBER = 0xd7;
const TRACK_TYPE = 0x83;
const CODEC_ID = 0x86;
const CODEC_PRIVATE = 0x63a2;
const LANGUAGE = 0x22b59c;
const LANGUAGE_BCP47 = 0x22b59d;

export const SUBTITLE_TYPE = 0x11;
const OTHER_TYPES: Readonly<Record<number, string>> = {
  16: 'a logo track',
  18: 'a track of buttons',
  32: 'a control track',
};

/** Limit of the list of tracks, in bytes; codec data and cover pictures are elsewhere. */
const MAX_TRACKS_BYTES = 16 * 1024 * 1024;
/** Limit of the elements before the first cluster, after which nothing is searched. */
const MAX_TOP_ELEMENTS = 1000;
/**
 * Reads the subtitle tracks of a Matroska or WebM file, and names everything else that is neither audio nor video. Throws
 * BrokenMedia for a file that is cut short.
 */
export async function readMatroskaTracks(source: ByteSource, signal: AbortSignal): Promise<OtherTracks> {
  const window = new ReadWindow(source, signal);
  const subtitles: { codecId: string; language: string | null }[] = [];
  const nouns: string[] = [];
  let offset = 0;
  let end = source.sizeBytes;
  for (let passed = 0; passed < MAX_TOP_ELEMENTS && offset < end; passed += 1) {
    const head = await window.read(offset, Math.min(MAX_HEADER_BYTES, source.sizeBytes - offset));
    const element = elementAt(head, 0, end - offset);
    if (element === null || element.id === CLUSTER) break;
    const [start, stop] = [offset + element.start, offset + element.end];
    if (element.id === SEGMENT && element.missingBytes > 0) {
      throw new BrokenMedia(`is cut short: ${element.missingBytes} bytes are missing at its end`);
    }
    if (element.id === ATTACHMENTS) nouns.push('an attachment (a cover picture or a font)');
    if (element.id === TRACKS) {
      if (stop - start > MAX_TRACKS_BYTES) throw new BrokenMedia('has a list of tracks that is too large to be read');
      for (const track of tracksIn(await window.read(start, stop - start))) addTrack(track, subtitles, nouns);
    }
    // A segment holds all else: go into it, and past everything but it.
    if (element.id === SEGMENT) end = stop;
    offset = element.id === SEGMENT ? start : stop;
  }
  return { subtitles, nouns, statedSeconds: null };
}

export interface MatroskaTrack {
  readonly number: number;
  readonly type: number;
  readonly codecId: string;
  /** Initialisation data of the decoder: for WebVTT its header, with styles and regions. */
  readonly codecPrivate: Buffer;
  readonly language: string | null;
}

function addTrack(
  { type, codecId, language }: MatroskaTrack,
  subtitles: { codecId: string; language: string | null }[],
  nouns: string[],
): void {
  if (type === SUBTITLE_TYPE) subtitles.push({ codecId, language });
  else if (type in OTHER_TYPES) nouns.push(OTHER_TYPES[type] as string);
}

/** Yields the tracks in the content of a Tracks element. */
export function* tracksIn(bytes: Buffer): Generator<MatroskaTrack> {
  for (const entry of childrenOf(bytes, 0, bytes.length)) {
    if (entry.id !== TRACK_ENTRY) continue;
    const fields = new Map(
      [...childrenOf(bytes, entry.start, entry.end)].map(({ id, start, end }) => [id, bytes.subarray(start, end)]),
    );
    const text = (id: number): string | null => fields.get(id)?.toString('utf8').replace(/\0+$/, '') ?? null;
    yield {
      number: unsignedOf(fields.get(TRACK_NUMBER)),
      type: fields.get(TRACK_TYPE)?.at(-1) ?? 0,
      codecId: text(CODEC_ID) ?? '',
      codecPrivate: fields.get(CODEC_PRIVATE) ?? Buffer.alloc(0),
      // An absent language means English by RFC 9559 §5.1.4.1.19, but files mean an unknown one.
      language: text(LANGUAGE_BCP47) ?? text(LANGUAGE),
    };
  }
}
