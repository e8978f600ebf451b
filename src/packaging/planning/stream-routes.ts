import type { Route } from '../packaging-plan.ts';
import type { ProbedFile, ProbedStream } from '../probed-file.ts';

/** Reason why a stream cannot be packaged, as the end of a sentence. */
export interface Refusal {
  readonly reason: string;
}

/** Reason for leaving out what a publication has no rendition for. */
export const NOT_PACKAGED = 'it is no audio, video or subtitles that can be packaged';

/** Codecs that the packager reads in MP4 and MPEG-TS, by mediabunny's names. */
const PACKAGED_CODECS = new Set(['avc', 'hevc', 'av1', 'vp9', 'aac', 'ac3', 'eac3', 'flac', 'opus', 'alac', 'mp3']);
/** Codecs that it reads in WebM and Matroska. */
const WEBM_CODECS = new Set(['vp9', 'av1', 'opus']);
/** Codecs that it reads in MPEG-TS. Not AC-3, which it does not find under the stream type of DVB, nor E-AC-3. */
const TS_CODECS = new Set(['avc', 'hevc', 'aac', 'mp3']);

/** Lowest sample rate of MP3 that the packager reads: below is MPEG-2. */
const MIN_MP3_RATE = 32_000;

/** Widest samples of FLAC: more are new (RFC 9639) and unknown to browsers and most releases of ffmpeg. */
const MAX_FLAC_BITS = 24;

/** Packets before zero up to this duration are audio priming, and no edit list. */
const PRIMING_SECONDS = 0.001;

const DIRECT: Route = { kind: 'direct' };
const REMUXED: Route = { kind: 'feed', into: 'mp4', packets: 'as-they-are' };
const MP3_FEED: Route = { kind: 'feed', into: 'mpegts', packets: 'as-they-are' };
const FLAC_FEED: Route = { kind: 'feed', into: 'mp4', packets: 'flac' };

/** Returns the route of a stream to the packager, by the containers and codecs that it was measured to read. */
export function routeOf(file: ProbedFile, stream: ProbedStream, isAlone: boolean): Route | Refusal {
  if (stream.kind === 'text') return textRoute(stream);
  if (stream.kind === 'picture') return { reason: NOT_PACKAGED };
  const { codec } = stream;
  if (codec?.startsWith('pcm-f')) return refusedFloat(codec);
  if (becomesFlac(codec)) return FLAC_FEED;
  if (codec === null || !PACKAGED_CODECS.has(codec)) return { reason: refusalOf(stream) };
  if ((stream.bitsPerSample ?? 0) > MAX_FLAC_BITS) {
    return { reason: `FLAC of ${stream.bitsPerSample} bits a sample is not played by browsers; convert it to 24 bits` };
  }
  if (codec === 'mp3' && stream.sampleRate !== null && stream.sampleRate < MIN_MP3_RATE) {
    return { reason: `MP3 of ${stream.sampleRate} samples a second is not read by the packager; encode it as AAC` };
  }
  if (codec === 'mp3' && !(file.container === 'mpeg-ts' && readsTransportStream(file, isAlone))) return MP3_FEED;
  return packagerReads(file, isAlone) ? DIRECT : REMUXED;
}

/** Returns the route through ffmpeg for a codec that is packaged. */
export function feedRouteOf(codec: string): Route {
  if (codec === 'pcm') return FLAC_FEED;
  return codec === 'mp3' ? MP3_FEED : REMUXED;
}

/** Returns whether the packager reads a file itself: it refuses a whole file for one stream that it cannot parse. */
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

/** Returns whether an edit list starts the video between key frames: the packager fails on the hidden packets. */
function hasPreroll({ streams }: ProbedFile): boolean {
  return streams.some(({ kind, startSeconds }) => kind === 'video' && startSeconds < -PRIMING_SECONDS);
}

function readsWebm({ streams }: ProbedFile): boolean {
  const isOneOfAKind = streams.every(({ kind, indexOfKind }) => kind === 'text' || indexOfKind === 0);
  return isOneOfAKind && streams.every(({ codec }) => codec !== null && WEBM_CODECS.has(codec));
}

/**
 * Returns whether the packager reads a transport stream itself. Its times start anywhere, mostly at 1.4 s, so it would be
 * out of time with other files; ffmpeg shifts them to zero. ffmpeg also selects among several streams of a kind.
 */
function readsTransportStream({ streams, others }: ProbedFile, isAlone: boolean): boolean {
  const isOneOfAKind = others.length === 0 && streams.every(({ indexOfKind }) => indexOfKind === 0);
  return isAlone && isOneOfAKind && streams.every(({ codec }) => codec !== null && TS_CODECS.has(codec));
}

/** Readers of text subtitles, by codec; subtitles that are pictures cannot become WebVTT. */
const TEXT_READERS: ReadonlyMap<string, 'file' | 'matroska' | 'mp4' | 'ffmpeg'> = new Map(
  Object.entries({
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
  }),
);

function textRoute({ codec, codecId }: ProbedStream): Route | Refusal {
  const reader = TEXT_READERS.get(codec ?? '');
  if (reader !== undefined) return { kind: 'text', reader };
  return { reason: `subtitles of the kind ${codecId ?? codec ?? 'unknown'} cannot be turned into WebVTT` };
}

function refusedFloat(codec: string): Refusal {
  return {
    reason: `samples in floating point (${codec}) have no lossless form that players take; convert them to 24 bits`,
  };
}

/** Says that a codec is not packaged, and what to do. */
function refusalOf({ kind, codec, codecId }: ProbedStream): string {
  const name = codecName(codec, codecId);
  const wanted = kind === 'video' ? 'H.264, HEVC, AV1 or VP9' : 'AAC, AC-3, Opus or FLAC';
  return `${name} is not played by browsers from HLS or DASH, and packaging does not encode anew; encode it as ${wanted}`;
}

const CODEC_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    vorbis: 'Vorbis',
    dts: 'DTS',
    vp8: 'VP8',
    mp4v: 'MPEG-4 Part 2 or MPEG-2 video',
    apch: 'ProRes',
    apcn: 'ProRes',
    apcs: 'ProRes',
    apco: 'ProRes',
    ap4h: 'ProRes',
    ap4x: 'ProRes',
    'V_MPEG4/ISO/ASP': 'MPEG-4 Part 2',
    V_MPEG2: 'MPEG-2 video',
    V_PRORES: 'ProRes',
  }),
);

function codecName(codec: string | null, codecId: string | null): string {
  const known = CODEC_NAMES.get(codec ?? '') ?? CODEC_NAMES.get(codecId ?? '');
  if (known !== undefined) return known;
  return codec ?? (codecId === null ? 'its codec, which is unknown,' : `the codec "${codecId}"`);
}

/** Returns whether a codec is packaged as FLAC: raw samples, and lossless codecs that few players support. */
export function becomesFlac(codec: string | null): boolean {
  return codec !== null && (codec.startsWith('pcm') || ['alac', 'alaw', 'ulaw'].includes(codec));
}
