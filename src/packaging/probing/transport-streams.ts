import { type ByteSource, readRange } from '#bytes/byte-source.ts';

/** Bytes that are searched for program tables, which come several times a second. */
const SEARCHED_BYTES = 2 * 1024 * 1024;
const PACKET_BYTES = 188;
const SYNC = 0x47;
const PAT_PID = 0;
/** Largest section of a program table (ISO/IEC 13818-1 §2.4.4.4). */
const MAX_SECTION_BYTES = 1024;

/** Description of a stream in a program map. */
interface ProgramStream {
  readonly pid: number;
  readonly streamType: number;
  readonly descriptorTags: readonly number[];
}

/**
 * Returns nouns for the streams of a transport stream that a demuxer did not list: broadcasts carry subtitles as pictures,
 * teletext, cue messages and more. `listedPids` are those that it listed.
 */
export async function unlistedStreams(
  source: ByteSource,
  listedPids: readonly number[],
  signal: AbortSignal,
): Promise<string[]> {
  const bytes = await readRange(source, 0, Math.min(source.sizeBytes, SEARCHED_BYTES), signal);
  const packets = packetsOf(bytes);
  const pat = sectionOf(packets, PAT_PID);
  const streams = pat === null ? [] : programPidsOf(pat).flatMap((pid) => streamsOf(sectionOf(packets, pid)));
  return streams.filter(({ pid }) => !listedPids.includes(pid)).map(nounOf);
}

/** Groups packets by their PID, in order; recorders put four bytes before each. */
function packetsOf(bytes: Buffer): Map<number, Buffer[]> {
  const skipped = bytes[0] === SYNC ? 0 : 4;
  const packets = new Map<number, Buffer[]>();
  for (let at = skipped; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES + skipped) {
    if (bytes[at] !== SYNC) continue;
    const pid = bytes.readUInt16BE(at + 1) & 0x1fff;
    const ofPid = packets.get(pid);
    if (ofPid === undefined) packets.set(pid, [bytes.subarray(at, at + PACKET_BYTES)]);
    else ofPid.push(bytes.subarray(at, at + PACKET_BYTES));
  }
  return packets;
}

/** Returns the first complete section on a PID, from its table ID on; null where there is none. */
function sectionOf(packets: ReadonlyMap<number, readonly Buffer[]>, pid: number): Buffer | null {
  const parts: Buffer[] = [];
  let length = 0;
  for (const packet of packets.get(pid) ?? []) {
    const starts = ((packet[1] as number) & 0x40) !== 0;
    if (parts.length === 0 && !starts) continue;
    const payload = payloadOf(packet);
    const part = parts.length === 0 ? payload.subarray(1 + (payload[0] ?? 0)) : payload;
    parts.push(part);
    length += part.length;
    const section = Buffer.concat(parts);
    if (section.length >= 3) {
      const size = 3 + (section.readUInt16BE(1) & 0x0fff);
      if (section.length >= size) return section.subarray(0, size);
    }
    if (length > MAX_SECTION_BYTES + PACKET_BYTES) return null;
  }
  return null;
}

function payloadOf(packet: Buffer): Buffer {
  const hasAdaptation = ((packet[3] as number) & 0x20) !== 0;
  return packet.subarray(hasAdaptation ? Math.min(5 + (packet[4] as number), PACKET_BYTES) : 4);
}

/** Returns the PIDs of program maps (ISO/IEC 13818-1 §2.4.4.3); the last four bytes of a section are its checksum. */
function programPidsOf(pat: Buffer): number[] {
  const pids: number[] = [];
  for (let at = 8; at + 4 <= pat.length - 4; at += 4) {
    if (pat.readUInt16BE(at) !== 0) pids.push(pat.readUInt16BE(at + 2) & 0x1fff);
  }
  return pids;
}

/** Returns the streams of a program map (ISO/IEC 13818-1 §2.4.4.8). */
function streamsOf(pmt: Buffer | null): ProgramStream[] {
  const streams: ProgramStream[] = [];
  if (pmt === null || pmt.length < 16) return streams;
  for (let at = 12 + (pmt.readUInt16BE(10) & 0x0fff); at + 5 <= pmt.length - 4; ) {
    const end = Math.min(at + 5 + (pmt.readUInt16BE(at + 3) & 0x0fff), pmt.length - 4);
    const descriptorTags: number[] = [];
    for (let tag = at + 5; tag + 2 <= end; tag += 2 + (pmt[tag + 1] as number)) descriptorTags.push(pmt[tag] as number);
    streams.push({ streamType: pmt[at] as number, pid: pmt.readUInt16BE(at + 1) & 0x1fff, descriptorTags });
    at = end;
  }
  return streams;
}

/** Nouns for streams of private data, by their DVB descriptors (ETSI EN 300 468 §6). */
const BY_DESCRIPTOR: Readonly<Record<number, string>> = {
  86: 'teletext',
  89: 'a track of subtitles as pictures',
  106: 'a track of AC-3 audio',
  122: 'a track of E-AC-3 audio',
  123: 'a track of DTS audio',
};
const BY_TYPE: Readonly<Record<number, string>> = {
  1: 'a track of MPEG-1 video',
  2: 'a track of MPEG-2 video',
  3: 'a track of MPEG audio',
  4: 'a track of MPEG audio',
  16: 'a track of MPEG-4 Part 2 video',
  17: 'a track of AAC audio in LATM',
  21: 'a track of timed metadata',
  130: 'a track of DTS audio',
  134: 'a track of cue messages (SCTE 35)',
};

function nounOf({ pid, streamType, descriptorTags }: ProgramStream): string {
  const described = descriptorTags.map((tag) => BY_DESCRIPTOR[tag]).find((noun) => noun !== undefined);
  const noun = (streamType === 6 ? described : undefined) ?? BY_TYPE[streamType];
  return noun ?? `a stream of the type 0x${streamType.toString(16)} (PID ${pid})`;
}
