import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { riff } from '#formats/riff/riff.ts';
import { BrokenMedia } from './broken-media.ts';
import { describeTrack, fromKeyFrame } from './describe-track.ts';
import { guardedSource } from './guarded-source.ts';
import { readMatroskaTracks } from './matroska-tracks.ts';
import { type OtherTracks, readOtherTracks } from './movie-tracks.ts';
import { readMp3Start } from './mp3-start.ts';
import { type ContainerKind, NO_DETAILS, type ProbedFile, type ProbedStream } from './probed-file.ts';
import { SNIFFED_BYTES, sniffContainers } from './sniff-container.ts';
import { endOf, walkElementary, warningsOfEnd } from './stated-lengths.ts';
import { unlistedStreams } from './transport-streams.ts';

/** Streams of one file that are looked at. */
const MAX_STREAMS_PER_FILE = 64;

/**
 * Finds out what streams a file holds, in this process: no native parser sees bytes from outside before something is known
 * of them. Null where the bytes are no container that is known. Throws BrokenMedia where they are one, and damaged.
 */
export async function probeMedia(source: ByteSource, path: string, signal: AbortSignal): Promise<ProbedFile | null> {
  const head = await readRange(source, 0, Math.min(source.sizeBytes, SNIFFED_BYTES), signal);
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

/** What the demuxer passes over in silence: whatever is no audio and no video. */
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

/** Its header says how many bytes of samples there are; what else our own reader does not take is no matter here. */
async function refuseCutShortWave(source: ByteSource, signal: AbortSignal): Promise<void> {
  try {
    await riff.readLayout(source, signal);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    if (cause.reason === 'RIFF_CHUNK_EXCEEDS_PARENT') throw new BrokenMedia(`is damaged: ${cause.message}`, { cause });
  }
}

/** The demuxers, none of which reads other files, as one of playlists would; null where there is none. */
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
    streams.push(container === 'mpeg-ts' && track.isVideoTrack() ? await fromKeyFrame(described, track) : described);
  }
  const texts = others.subtitles.map((subtitle, indexOfKind) => ({
    ...NO_DETAILS,
    ...subtitle,
    kind: 'text' as const,
    indexOfKind,
    codec: TEXT_CODECS[subtitle.codecId] ?? null,
  }));
  const pids = tracks.map(({ id }) => id);
  const unlisted = container === 'mpeg-ts' ? await unlistedStreams(source, pids, signal) : [];
  const stated = { statedSeconds: others.statedSeconds, walked };
  const warnings = await warningsOfEnd(path, container, streams, stated, source, signal);
  return { path, container, streams: [...streams, ...texts], others: [...others.nouns, ...unlisted], warnings };
}

/** An elementary stream of AC-3 or E-AC-3, of which nothing more is read here. */
function ac3File(path: string): ProbedFile {
  const stream = { ...NO_DETAILS, kind: 'audio' as const, indexOfKind: 0, codec: 'ac3' };
  return { path, container: 'ac3', streams: [stream], others: [], warnings: [] };
}

/** Subtitles by what containers call them, as ffmpeg names their codecs. */
const TEXT_CODECS: Readonly<Record<string, string>> = {
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
};
