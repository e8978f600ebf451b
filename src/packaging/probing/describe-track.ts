import type * as Mediabunny from 'mediabunny';
import type { ProbedStream } from './probed-file.ts';

/** Codecs that are packaged although the demuxer does not know them, by what containers call them. */
const UNLISTED_CODECS: Readonly<Record<string, string>> = { alac: 'alac', A_ALAC: 'alac' };

/**
 * Describes a stream of video or audio. `streamIndex` counts these in their file; `endSeconds` is where it ends, or null
 * where nobody knows.
 */
export async function describeTrack(
  track: Mediabunny.InputTrack,
  streamIndex: number,
  endSeconds: number | null,
): Promise<ProbedStream> {
  const codecId = await track.getInternalCodecId();
  const disposition = await track.getDisposition();
  const startSeconds = await track.getFirstTimestamp();
  const codec = (await track.getCodec()) ?? UNLISTED_CODECS[String(codecId)] ?? null;
  const shape = track.isVideoTrack()
    ? { width: await track.getDisplayWidth(), height: await track.getDisplayHeight(), channels: null }
    : { width: null, height: null, channels: track.isAudioTrack() ? await track.getNumberOfChannels() : null };
  return {
    kind: track.isVideoTrack() ? 'video' : 'audio',
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
    rotation: track.isVideoTrack() ? await track.getRotation() : 0,
    zeroSeconds: null,
    isForced: disposition.forced,
    isCommentary: disposition.commentary,
    isForHearingImpaired: disposition.hearingImpaired,
    isForVisuallyImpaired: disposition.visuallyImpaired,
  };
}

/** A stream of video as it is from its first key frame on. */
export async function fromKeyFrame(stream: ProbedStream, track: Mediabunny.InputVideoTrack): Promise<ProbedStream> {
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

/** How wide samples are, by the STREAMINFO block of a stream of FLAC (RFC 9639 §8.2); null where it is cut off. */
async function bitsOfFlac(track: Mediabunny.InputAudioTrack): Promise<number | null> {
  const { description } = (await track.getDecoderConfig()) ?? {};
  if (description === undefined) return null;
  const bytes = ArrayBuffer.isView(description)
    ? Buffer.from(description.buffer, description.byteOffset, description.byteLength)
    : Buffer.from(description);
  const info = bytes.indexOf('fLaC', 0, 'latin1') + 8;
  return info < 8 || bytes.length < info + 14 ? null : ((bytes.readUInt16BE(info + 12) >> 4) & 31) + 1;
}
