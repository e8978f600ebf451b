import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { isobmff } from '#formats/isobmff/isobmff.ts';
import { BrokenMedia } from './broken-media.ts';
import { type OtherTracks, readOtherTracks } from './movie-tracks.ts';
import type { ContainerKind, ProbedFile, ProbedStream } from './probed-file.ts';

/** Streams of one file that are looked at. */
const MAX_STREAMS_PER_FILE = 64;

/** What a demuxer may keep of a file in memory while it is probed, in bytes. */
const PROBE_CACHE_BYTES = 4 * 1024 * 1024;

/**
 * Finds out what streams a file holds, in this process: no native parser sees bytes from outside before something is known
 * of them. Null where the bytes are no container that is known. Throws BrokenMedia where they are one, and damaged.
 */
export async function probeMedia(source: ByteSource, path: string, signal: AbortSignal): Promise<ProbedFile | null> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, HEAD_BYTES), signal);
  if (isAc3(head)) return ac3File(path);
  // Our own reader comes first: its reading is bounded, and it tells what is missing of a file that is cut short.
  const others = isobmff.matches(head) ? await readMovie(source, signal) : NO_OTHER_TRACKS;
  const library = await import('mediabunny');
  library.Logging.level = library.LogLevel.Silent;
  const input = new library.Input({ formats: formatsOf(library), source: sourceOf(library, source, signal) });
  try {
    const format = await formatOf(library, input);
    return format === null ? null : await describe(input, format, others, path, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError || error instanceof BrokenMedia) throw error;
    throw new BrokenMedia(`cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    input.dispose();
  }
}

/** Enough for every signature. */
const HEAD_BYTES = 64 * 1024;

const NO_OTHER_TRACKS: OtherTracks = { subtitles: [], nouns: [] };

async function readMovie(source: ByteSource, signal: AbortSignal): Promise<OtherTracks> {
  try {
    return await readOtherTracks(source, signal);
  } catch (cause) {
    if (cause instanceof AppError && cause.reason.startsWith('BMFF_')) {
      throw new BrokenMedia(`is damaged: ${cause.message}`, { cause });
    }
    throw cause;
  }
}

/** The containers that are read; none of them names other files, as playlists do. */
function formatsOf(library: typeof Mediabunny): Mediabunny.InputFormat[] {
  return [
    library.MP4,
    library.QTFF,
    library.MATROSKA,
    library.WEBM,
    library.MPEG_TS,
    library.WAVE,
    library.FLAC,
    library.OGG,
    library.MP3,
    library.ADTS,
  ];
}

function sourceOf(library: typeof Mediabunny, source: ByteSource, signal: AbortSignal): Mediabunny.CustomSource {
  return new library.CustomSource({
    getSize: () => source.sizeBytes,
    read: (start, end) => readRange(source, start, end - start, signal),
    maxCacheSize: PROBE_CACHE_BYTES,
    prefetchProfile: 'fileSystem',
    // A read ahead that fails is made again when its bytes are needed.
    handleUnhandledError: () => undefined,
  });
}

async function formatOf(library: typeof Mediabunny, input: Mediabunny.Input): Promise<ContainerKind | null> {
  if (!(await input.canRead())) return null;
  const kinds: readonly [Mediabunny.InputFormat, ContainerKind][] = [
    [library.MP4, 'mp4'],
    [library.QTFF, 'quicktime'],
    [library.WEBM, 'webm'],
    [library.MATROSKA, 'matroska'],
    [library.MPEG_TS, 'mpeg-ts'],
    [library.WAVE, 'wave'],
    [library.FLAC, 'flac'],
    [library.OGG, 'ogg'],
    [library.MP3, 'mp3'],
    [library.ADTS, 'adts'],
  ];
  const format = await input.getFormat();
  return kinds.find(([candidate]) => candidate === format)?.[1] ?? null;
}

async function describe(
  input: Mediabunny.Input,
  container: ContainerKind,
  others: OtherTracks,
  path: string,
  signal: AbortSignal,
): Promise<ProbedFile> {
  const tracks = await input.getTracks();
  if (tracks.length > MAX_STREAMS_PER_FILE) {
    throw new BrokenMedia(`holds ${tracks.length} streams, more than the ${MAX_STREAMS_PER_FILE} that are supported`);
  }
  const streams: ProbedStream[] = [];
  for (const [streamIndex, track] of tracks.entries()) {
    signal.throwIfAborted();
    streams.push(await describeTrack(track, streamIndex));
  }
  const texts = others.subtitles.map((subtitle, indexOfKind) => ({
    ...NO_DETAILS,
    ...subtitle,
    kind: 'text' as const,
    indexOfKind,
    codec: textCodecOf(subtitle.codecId),
  }));
  return { path, container, streams: [...streams, ...texts], others: others.nouns };
}

async function describeTrack(track: Mediabunny.InputTrack, streamIndex: number): Promise<ProbedStream> {
  const codecId = await track.getInternalCodecId();
  const disposition = await track.getDisposition();
  const startSeconds = await track.getFirstTimestamp();
  const endSeconds = await track.computeDuration();
  const codec = await track.getCodec();
  const shape = track.isVideoTrack()
    ? { width: await track.getDisplayWidth(), height: await track.getDisplayHeight(), channels: null }
    : { width: null, height: null, channels: track.isAudioTrack() ? await track.getNumberOfChannels() : null };
  return {
    kind: track.isVideoTrack() ? 'video' : 'audio',
    indexOfKind: track.number - 1,
    streamIndex,
    codec,
    codecId: typeof codecId === 'string' ? codecId : null,
    language: await track.getLanguageCode(),
    title: await track.getName(),
    ...shape,
    startSeconds,
    durationSeconds: Math.max(endSeconds - Math.max(startSeconds, 0), 0),
    isForced: disposition.forced,
    isCommentary: disposition.commentary,
    isForHearingImpaired: disposition.hearingImpaired,
    isForVisuallyImpaired: disposition.visuallyImpaired,
  };
}

/** An elementary stream of AC-3 or E-AC-3 (ETSI TS 102 366 §4.4.1), of which nothing more is read here. */
function isAc3(head: Buffer): boolean {
  return head.length > 6 && head.readUInt16BE(0) === 0x0b77;
}

function ac3File(path: string): ProbedFile {
  const stream = { ...NO_DETAILS, kind: 'audio' as const, indexOfKind: 0, codec: 'ac3' };
  return { path, container: 'ac3', streams: [stream], others: [] };
}

/** What is not known of a stream whose packets nobody has looked at. */
export const NO_DETAILS = {
  streamIndex: 0,
  codecId: null,
  language: null,
  title: null,
  width: null,
  height: null,
  channels: null,
  startSeconds: 0,
  durationSeconds: null,
  isForced: false,
  isCommentary: false,
  isForHearingImpaired: false,
  isForVisuallyImpaired: false,
};

/** Subtitles by their sample entries, as ffmpeg names their codecs. */
function textCodecOf(codecId: string): string | null {
  return { tx3g: 'mov_text', text: 'mov_text', wvtt: 'wvtt', stpp: 'ttml' }[codecId] ?? null;
}
