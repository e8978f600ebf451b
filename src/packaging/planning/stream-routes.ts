import type { ContainerKind, ProbedFile, ProbedStream } from '../probing/probed-file.ts';
import type { Route } from './packaging-plan.ts';
import { becomesFlac } from './rendition-names.ts';

/** Why a stream cannot be packaged, as the end of a sentence. */
export interface Refusal {
  readonly reason: string;
}

/** What the packager takes from MP4 and MPEG-TS as it is, by mediabunny's names of codecs. */
const PACKAGED_CODECS = new Set(['avc', 'hevc', 'av1', 'vp9', 'aac', 'ac3', 'eac3', 'flac', 'opus', 'alac', 'mp3']);
/** What it reads in WebM and Matroska. */
const WEBM_CODECS = new Set(['vp9', 'av1', 'opus']);
/** AC-3 is not among them: the packager does not find it where its type is that of DVB, nor E-AC-3 at all. */
const TS_CODECS = new Set(['avc', 'hevc', 'aac', 'mp3']);

/** MP3 of fewer samples a second is that of MPEG-2, whose frames the packager does not read. */
const LOWEST_MP3_RATE = 32_000;

/** Wider samples are new to FLAC (RFC 9639), and neither browsers nor most releases of ffmpeg know them. */
const WIDEST_FLAC_BITS = 24;

/** Before the first frame that is shown, so many seconds of packets are priming of audio and no edit list. */
const PRIMING_SECONDS = 0.001;

const DIRECT: Route = { kind: 'direct' };
const REMUXED: Route = { kind: 'feed', into: 'mp4', packets: 'as-they-are' };
const FEEDS: Readonly<Record<string, Route>> = {
  mp3: { kind: 'feed', into: 'mpegts', packets: 'as-they-are' },
  pcm: { kind: 'feed', into: 'mp4', packets: 'flac' },
};

/** How a stream reaches the packager, by what was measured of which containers and codecs it takes. */
export function routeOf(file: ProbedFile, stream: ProbedStream, isAlone: boolean): Route | Refusal {
  if (stream.kind === 'text') return textRoute(stream);
  const { codec } = stream;
  if (codec?.startsWith('pcm-f')) return refusedFloat(codec);
  if (becomesFlac(codec)) return FEEDS['pcm'] as Route;
  if (codec === null || !PACKAGED_CODECS.has(codec)) return { reason: refusalOf(stream) };
  if ((stream.bitsPerSample ?? 0) > WIDEST_FLAC_BITS) {
    return { reason: `FLAC of ${stream.bitsPerSample} bits a sample is not played by browsers; convert it to 24 bits` };
  }
  if (codec === 'mp3' && stream.sampleRate !== null && stream.sampleRate < LOWEST_MP3_RATE) {
    return { reason: `MP3 of ${stream.sampleRate} samples a second is not read by the packager; encode it as AAC` };
  }
  if (codec === 'mp3' && !(file.container === 'mpeg-ts' && readsTransportStream(file, isAlone)))
    return FEEDS['mp3'] as Route;
  return packagerReads(file, isAlone) ? DIRECT : REMUXED;
}

/** How packets of a codec that is packaged reach the packager by way of ffmpeg. */
export function feedRouteOf(codec: string): Route {
  return FEEDS[codec] ?? REMUXED;
}

/** Whether the packager can read a file itself: it gives up a whole file for one stream that it cannot parse. */
function packagerReads(file: ProbedFile, isAlone: boolean): boolean {
  const { container, streams } = file;
  if (container === 'mp4') return streams.every(isParsedInMp4) && !hasPreroll(file);
  if (container === 'quicktime')
    return streams.every(({ kind }) => kind === 'video') && streams.every(isParsedInMp4) && !hasPreroll(file);
  if (container === 'webm' || container === 'matroska') return readsWebm(file);
  return container === 'mpeg-ts' && readsTransportStream(file, isAlone);
}

function isParsedInMp4({ kind, codec }: ProbedStream): boolean {
  return kind === 'text' || (codec !== null && PACKAGED_CODECS.has(codec));
}

/** Whether an edit list starts the film between key frames: the packager fails on the packets that it hides. */
export function hasPreroll({ streams }: ProbedFile): boolean {
  return streams.some(({ kind, startSeconds }) => kind === 'video' && startSeconds < -PRIMING_SECONDS);
}

function readsWebm({ streams }: ProbedFile): boolean {
  const isOneOfAKind = streams.every(({ kind, indexOfKind }) => kind === 'text' || indexOfKind === 0);
  return isOneOfAKind && streams.every(({ codec }) => codec !== null && WEBM_CODECS.has(codec));
}

/**
 * The time of a transport stream starts anywhere, mostly at 1.4 s: read directly it plays, but not in time with other
 * files, which start at zero; ffmpeg moves it there. Which of several streams is which is also left to ffmpeg.
 */
function readsTransportStream({ streams, others }: ProbedFile, isAlone: boolean): boolean {
  const isOneOfAKind = others.length === 0 && streams.every(({ indexOfKind }) => indexOfKind === 0);
  return isAlone && isOneOfAKind && streams.every(({ codec }) => codec !== null && TS_CODECS.has(codec));
}

/** What reads subtitles of text, by their codec; those that are pictures have no WebVTT. */
const TEXT_READERS: Readonly<Record<string, 'file' | 'matroska' | 'mp4' | 'ffmpeg'>> = {
  vtt: 'file',
  srt: 'file',
  ttml: 'file',
  // Neither the packager nor ffmpeg reads these out of MP4.
  wvtt: 'mp4',
  stpp: 'mp4',
  // Only late releases of ffmpeg read WebVTT as others than itself put it into Matroska.
  webvtt: 'matroska',
  subrip: 'matroska',
  mov_text: 'ffmpeg',
  ass: 'ffmpeg',
};

function textRoute({ codec, codecId }: ProbedStream): Route | Refusal {
  const reader = TEXT_READERS[codec ?? ''];
  if (reader !== undefined) return { kind: 'text', reader };
  return { reason: `subtitles of the kind ${codecId ?? codec ?? 'unknown'} cannot be turned into WebVTT` };
}

function refusedFloat(codec: string): Refusal {
  return {
    reason: `samples in floating point (${codec}) have no lossless form that players take; convert them to 24 bits`,
  };
}

/** Says of a codec that it is not packaged, and what to do. */
function refusalOf({ kind, codec, codecId }: ProbedStream): string {
  const name = codecName(codec, codecId);
  const wanted = kind === 'video' ? 'H.264, HEVC, AV1 or VP9' : 'AAC, AC-3, Opus or FLAC';
  return `${name} is not played by browsers from HLS or DASH, and packaging does not encode anew; encode it as ${wanted}`;
}

const CODEC_NAMES: Readonly<Record<string, string>> = {
  vorbis: 'Vorbis',
  dts: 'DTS',
  vp8: 'VP8',
  mp4v: 'MPEG-4 Part 2',
  apch: 'ProRes',
  apcn: 'ProRes',
  apcs: 'ProRes',
  apco: 'ProRes',
  ap4h: 'ProRes',
  ap4x: 'ProRes',
  'V_MPEG4/ISO/ASP': 'MPEG-4 Part 2',
  V_MPEG2: 'MPEG-2 video',
  V_PRORES: 'ProRes',
};

function codecName(codec: string | null, codecId: string | null): string {
  const known = CODEC_NAMES[codec ?? ''] ?? CODEC_NAMES[codecId ?? ''];
  if (known !== undefined) return known;
  return codec ?? (codecId === null ? 'its codec, which is unknown,' : `the codec "${codecId}"`);
}

/** What ffmpeg calls the demuxer of a container: it is told, so that it never takes a playlist for media. */
export const DEMUXERS: Readonly<Record<ContainerKind, string>> = {
  mp4: 'mov',
  quicktime: 'mov',
  matroska: 'matroska',
  webm: 'matroska',
  'mpeg-ts': 'mpegts',
  mp3: 'mp3',
  wave: 'wav',
  ogg: 'ogg',
  adts: 'aac',
  flac: 'flac',
  ac3: 'ac3', // It reads E-AC-3 alike.
  vtt: 'webvtt',
  srt: 'srt',
  ttml: 'ttml', // We read it ourselves.
};
