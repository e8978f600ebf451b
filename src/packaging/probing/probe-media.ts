import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { riff } from '#formats/formats.ts';
import { readMatroskaTracks } from '../containers/matroska.ts';
import { type OtherTracks, readOtherTracks } from '../containers/mp4-tracks.ts';
import {
  BrokenMedia,
  type ContainerKind,
  type ProbedFile,
  type ProbedStream,
  STREAM_DEFAULTS,
} from '../probed-file.ts';
import { guardedSource } from './guarded-source.ts';
import { SNIFF_SIZE_BYTES, sniffContainers } from './sniff-container.ts';
import { endOf, readMp3Start, walkElementary, warningsOfEnd } from './stream-lengths.ts';
import { unlistedStreams } from './transport-streams.ts';

/** Limit of streams in one file. */
const MAX_STREAMS_PER_FILE = 64;

/**
 * Finds the streams of a file in this process, so that no native parser reads bytes from outside before they are checked.
 * Returns null for bytes of no known container. Throws BrokenMedia for a damaged file of a known one.
 */
export async function probeMedia(source: ByteSource, path: string, signal: AbortSignal): Promise<ProbedFile | null> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, SNIFF_SIZE_BYTES), signal);
  const sniffed = sniffContainers(head);
  // Cutters leave silence or a torn frame in front of MP3, and nothing else tells then what it is.
  const behindGarbage = sniffed.length === 0 && /\.mp3$/i.test(path) ? await readMp3Start(source, signal) : null;
  const candidates = behindGarbage === null ? sniffed : (['mp3'] as const);
  if (candidates.length === 0) return null;
  if (candidates.includes('ac3')) return ac3File(path);
  // Our own reader comes first: its reading is bounded, and it tells what is missing of a file that is cut short.
  const others = await readOthers(candidates, source, signal);
  const library = await import('mediabunny');
  library.Logging.level = library.LogLevel.Silent;
  const formats = candidates.map((kind) => formatOf(library, kind)).filter((format) => format !== null);
  const input = new library.Input({
    formats,
    source: guardedSource(
      library,
      source,
      { offset: behindGarbage?.offset ?? 0, isMatroska: candidates.includes('matroska') },
      signal,
    ),
  });
  try {
    // A sync word alone is a guess; signatures are none.
    if (isGuessed(candidates) && !(await input.canRead().catch(() => false))) return null;
    const format = await input.getFormat();
    const container = candidates.find((kind) => formatOf(library, kind) === format) as ContainerKind;
    return await describe(input, container, others, source, path, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AppError || error instanceof BrokenMedia) throw error;
    throw new BrokenMedia('has headers that are damaged, or of a kind that is not known', { cause: error });
  } finally {
    input.dispose();
  }
}

function isGuessed([first, ...others]: readonly ContainerKind[]): boolean {
  return others.length === 0 && (first === 'mp3' || first === 'adts');
}

/** Reads the tracks that the demuxer skips: everything but audio and video. */
async function readOthers(
  candidates: readonly ContainerKind[],
  source: ByteSource,
  signal: AbortSignal,
): Promise<OtherTracks> {
  if (candidates.includes('matroska')) return await readMatroskaTracks(source, signal);
  if (candidates.includes('wave')) await refuseCutShortWave(source, signal);
  if (!candidates.includes('mp4')) return { subtitles: [], nouns: [], statedSeconds: null };
  try {
    return await readOtherTracks(source, signal);
  } catch (cause) {
    if (cause instanceof AppError && cause.reason.startsWith('BMFF_')) {
      throw new BrokenMedia(`is damaged: ${cause.message}`, { cause });
    }
    throw cause;
  }
}

/** Refuses a WAV file with fewer bytes than its header states. Other findings of our reader do not matter here. */
async function refuseCutShortWave(source: ByteSource, signal: AbortSignal): Promise<void> {
  try {
    await riff.readLayout(source, signal);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    if (cause.reason === 'RIFF_CHUNK_EXCEEDS_PARENT') throw new BrokenMedia(`is damaged: ${cause.message}`, { cause });
  }
}

/** Returns the demuxer of a container, null where there is none. None opens other files, as one for playlists would. */
function formatOf(library: typeof Mediabunny, kind: ContainerKind): Mediabunny.InputFormat | null {
  const formats: Readonly<Partial<Record<ContainerKind, Mediabunny.InputFormat>>> = {
    mp4: library.MP4,
    quicktime: library.QTFF,
    webm: library.WEBM,
    matroska: library.MATROSKA,
    'mpeg-ts': library.MPEG_TS,
    wave: library.WAVE,
    flac: library.FLAC,
    ogg: library.OGG,
    mp3: library.MP3,
    adts: library.ADTS,
  };
  return formats[kind] ?? null;
}

async function describe(
  input: Mediabunny.Input,
  container: ContainerKind,
  others: OtherTracks,
  source: ByteSource,
  path: string,
  signal: AbortSignal,
): Promise<ProbedFile> {
  const tracks = await input.getTracks();
  if (tracks.length > MAX_STREAMS_PER_FILE) {
    throw new BrokenMedia(`holds ${tracks.length} streams, more than the ${MAX_STREAMS_PER_FILE} that are supported`);
  }
  const walked = await walkElementary(container, source, signal);
  const streams: ProbedStream[] = [];
  for (const [streamIndex, track] of tracks.entries()) {
    signal.throwIfAborted();
    const described = await describeTrack(track, streamIndex, await endOf(track, container, walked));
    // Recordings of broadcasts start anywhere.
    streams.push(container === 'mpeg-ts' && track.isVideoTrack() ? await startAtKeyFrame(described, track) : described);
  }
  const texts = others.subtitles.map((subtitle, indexOfKind) => ({
    ...STREAM_DEFAULTS,
    ...subtitle,
    kind: 'text' as const,
    indexOfKind,
    codec: TEXT_CODECS.get(subtitle.codecId) ?? null,
  }));
  const pids = tracks.map(({ id }) => id);
  const unlisted = container === 'mpeg-ts' ? await unlistedStreams(source, pids, signal) : [];
  const stated = { statedSeconds: others.statedSeconds, walked };
  const warnings = await warningsOfEnd(path, container, streams, stated, source, signal);
  return { path, container, streams: [...streams, ...texts], others: [...others.nouns, ...unlisted], warnings };
}

/** Describes an elementary stream of AC-3 or E-AC-3, which is not read further. */
function ac3File(path: string): ProbedFile {
  const stream = { ...STREAM_DEFAULTS, kind: 'audio' as const, indexOfKind: 0, codec: 'ac3' };
  return { path, container: 'ac3', streams: [stream], others: [], warnings: [] };
}

/** Codecs of subtitles by containers' names, as ffmpeg names them. */
const TEXT_CODECS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    tx3g: 'mov_text',
    text: 'mov_text',
    wvtt: 'wvtt',
    stpp: 'stpp',
    'S_TEXT/UTF8': 'subrip',
    'S_TEXT/ASCII': 'subrip',
    'S_TEXT/WEBVTT': 'webvtt',
    'D_WEBVTT/SUBTITLES': 'webvtt',
    'S_TEXT/ASS': 'ass',
    'S_TEXT/SSA': 'ass',
  }),
);

/** Codecs that are packaged although the demuxer does not know them, by containers' names. */
const UNLISTED_CODECS: ReadonlyMap<string, string> = new Map(Object.entries({ alac: 'alac', A_ALAC: 'alac' }));

/**
 * Describes an audio or video stream. `streamIndex` is its index among these in the file; `endSeconds` is its end, null
 * where it is unknown.
 */
async function describeTrack(
  track: Mediabunny.InputTrack,
  streamIndex: number,
  endSeconds: number | null,
): Promise<ProbedStream> {
  const codecId = await track.getInternalCodecId();
  const disposition = await track.getDisposition();
  const startSeconds = await track.getFirstTimestamp();
  const codec = (await track.getCodec()) ?? UNLISTED_CODECS.get(String(codecId)) ?? null;
  const isVideo = track.isVideoTrack();
  const shape = isVideo
    ? { width: await track.getDisplayWidth(), height: await track.getDisplayHeight(), channels: null }
    : { width: null, height: null, channels: track.isAudioTrack() ? await track.getNumberOfChannels() : null };
  return {
    kind: isVideo ? await kindOfVideo(track, codec) : 'audio',
    id: track.id,
    indexOfKind: track.number - 1,
    streamIndex,
    codec,
    codecId: typeof codecId === 'string' ? codecId : null,
    language: await track.getLanguageCode(),
    title: await track.getName(),
    ...shape,
    sampleRate: track.isAudioTrack() ? await track.getSampleRate() : null,
    bitsPerSample: codec === 'flac' && track.isAudioTrack() ? await bitsOfFlac(track) : null,
    startSeconds,
    durationSeconds: endSeconds === null ? null : Math.max(endSeconds - Math.max(startSeconds, 0), 0),
    undecodableSeconds: 0,
    rotation: isVideo ? await track.getRotation() : 0,
    zeroSeconds: null,
    isForced: disposition.forced,
    isCommentary: disposition.commentary,
    isForHearingImpaired: disposition.hearingImpaired,
    isForVisuallyImpaired: disposition.visuallyImpaired,
  };
}

/** Tells a picture from video: it is a single frame, of a codec that the demuxer does not know, such as JPEG or PNG. */
async function kindOfVideo(track: Mediabunny.InputVideoTrack, codec: string | null): Promise<'video' | 'picture'> {
  if (codec !== null) return 'video';
  const { EncodedPacketSink } = await import('mediabunny');
  const packets = new EncodedPacketSink(track);
  const options = { metadataOnly: true };
  const first = await packets.getFirstPacket(options);
  return first !== null && (await packets.getNextPacket(first, options)) === null ? 'picture' : 'video';
}

/** Moves the start of a video stream to its first key frame. */
async function startAtKeyFrame(stream: ProbedStream, track: Mediabunny.InputVideoTrack): Promise<ProbedStream> {
  const { EncodedPacketSink } = await import('mediabunny');
  const packets = new EncodedPacketSink(track);
  const first = await packets.getFirstPacket();
  if (first === null || first.type === 'key') return stream;
  const key = await packets.getFirstKeyPacket();
  const undecodableSeconds = (key?.timestamp ?? 0) - stream.startSeconds;
  if (key === null || undecodableSeconds <= 0) return stream;
  const { durationSeconds } = stream;
  return {
    ...stream,
    undecodableSeconds,
    startSeconds: key.timestamp,
    durationSeconds: durationSeconds === null ? null : Math.max(durationSeconds - undecodableSeconds, 0),
  };
}

/** Returns the bits per sample in the STREAMINFO block of FLAC (RFC 9639 §8.2); null where it is cut off. */
async function bitsOfFlac(track: Mediabunny.InputAudioTrack): Promise<number | null> {
  const { description } = (await track.getDecoderConfig()) ?? {};
  if (description === undefined) return null;
  const bytes = ArrayBuffer.isView(description)
    ? Buffer.from(description.buffer, description.byteOffset, description.byteLength)
    : Buffer.from(description);
  const info = bytes.indexOf('fLaC', 0, 'latin1') + 8;
  return info < 8 || bytes.length < info + 14 ? null : ((bytes.readUInt16BE(info + 12) >> 4) & 31) + 1;
}
