import { isobmff } from '#formats/formats.ts';
import type { ContainerKind } from '../probed-file.ts';

/** Bytes at the start of a file that suffice for every signature. */
export const SNIFF_SIZE_BYTES = 1024;

/** Packet sizes of MPEG-TS, without and with the time stamp that recorders put before it; and the sync byte. */
const TS_PACKET_BYTES = [188, 192] as const;
const TS_SYNC = 0x47;

/**
 * Returns the containers that the first bytes of a file allow; none where it is not media. Most files of a large folder are
 * decided here, without a demuxer.
 */
export function sniffContainers(head: Buffer): readonly ContainerKind[] {
  const starts = (signature: string): boolean => head.toString('latin1', 0, signature.length) === signature;
  if (isobmff.matches(head)) return ['mp4', 'quicktime'];
  if (starts('\x1a\x45\xdf\xa3')) return ['webm', 'matroska'];
  if ((starts('RIFF') || starts('RF64')) && head.toString('latin1', 8, 12) === 'WAVE') return ['wave'];
  if (starts('fLaC')) return ['flac'];
  if (starts('OggS')) return ['ogg'];
  if (starts('ID3')) return ['mp3', 'flac', 'adts'];
  if (isTransportStream(head)) return ['mpeg-ts'];
  return sniffFrames(head);
}

/**
 * Containers that are not read, by their first bytes in hexadecimal; `.` stands for any four bits. The signatures are longer
 * than those of `formats/unsupported-containers.ts`, because a file that matches one here fails its folder.
 */
const FOREIGN_CONTAINERS: readonly (readonly [string, RegExp])[] = [
  ['MXF', /^060e2b34020501010d0102/], // SMPTE ST 377-1 §7.1
  ['AVI', /^52494646.{8}41564920/],
  ['Windows Media (ASF)', /^3026b2758e66cf11/],
  ['Flash Video', /^464c5601/],
  ['AIFF', /^464f524d.{8}4149464[36]/],
  ['BW64', /^42573634.{8}57415645/], // ITU-R BS.2088
  ['an MPEG program stream', /^000001ba/],
];

/** Returns the name of a media container that is not read; null where it is read, or the file is not media. */
export function sniffForeign(head: Buffer): string | null {
  const text = head.toString('hex', 0, 16);
  return FOREIGN_CONTAINERS.find(([, start]) => start.test(text))?.[0] ?? null;
}

function isTransportStream(head: Buffer): boolean {
  return TS_PACKET_BYTES.some((size) => {
    const at = size - TS_PACKET_BYTES[0];
    return head[at] === TS_SYNC && head[at + size] === TS_SYNC;
  });
}

/** Recognises elementary streams by the sync word of their first frame. */
function sniffFrames(head: Buffer): readonly ContainerKind[] {
  if (head.length < 7) return [];
  const word = head.readUInt16BE(0);
  if (word === 0x0b77) return ['ac3']; // ETSI TS 102 366 §4.4.1
  if ((word & 0xfff6) === 0xfff0) return ['adts']; // ISO/IEC 14496-3 §1.A.3.2
  return (word & 0xffe0) === 0xffe0 ? ['mp3'] : [];
}
