/** Containers that cannot carry a manifest here, by how they start, in hexadecimal; `.` stands for any four bits. */
const CONTAINERS: readonly (readonly [name: string, start: RegExp])[] = [
  ['Ogg', /^4f676753/],
  ['AIFF', /^464f524d/],
  ['CAF', /^63616666/],
  ['big-endian WAV (RIFX)', /^52494658/],
  ['Wave64', /^726966662e91cf11/],
  ['AU', /^2e736e64/],
  ['Matroska or WebM', /^1a45dfa3/],
  ['Flash Video', /^464c5601/],
  ['Windows Media', /^3026b275/],
  ['RealMedia', /^2e524d46/],
  ['MXF', /^060e2b34/],
  ['an MPEG program stream', /^000001ba/],
];

/** How much of a file is looked at where its first bytes do not tell. */
const LOOKED_AT_BYTES = 1024;
const TS_PACKET_SIZE_BYTES = 188;
const TS_SYNC = 0x47;
const ADTS_HEADER_SIZE_BYTES = 7;

/** Whether a file is a container that is not signed here, and that may hold what is. */
export function isForeignContainer(head: Uint8Array): boolean {
  return containerName(head) !== null;
}

/** What a file that is not signed here may be, for people; null where its first bytes do not tell. */
export function startsLike(head: Uint8Array): string | null {
  const name = containerName(head);
  if (name !== null) return name;
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length);
  if (isTransportStream(bytes)) return 'an MPEG transport stream';
  if (isAdts(bytes)) return 'AAC without a container (ADTS)';
  // The sync code of a frame with its reserved bit (RFC 9639, §9.1).
  if (bytes.length >= 2 && (bytes.readUInt16BE(0) & 0xfffe) === 0xfff8) return 'FLAC without its beginning';
  return isText(bytes.subarray(0, LOOKED_AT_BYTES)) ? 'text' : null;
}

function containerName(head: Uint8Array): string | null {
  const start = Buffer.from(head.subarray(0, 8)).toString('hex');
  return CONTAINERS.find(([, pattern]) => pattern.test(start))?.[0] ?? null;
}

function isTransportStream(bytes: Buffer): boolean {
  return [0, 1, 2].every((index) => bytes[index * TS_PACKET_SIZE_BYTES] === TS_SYNC);
}

/** Two frames in a row (ISO/IEC 14496-3 §1.A.3.2). */
function isAdts(bytes: Buffer): boolean {
  const isFrameAt = (offset: number): boolean =>
    offset + ADTS_HEADER_SIZE_BYTES <= bytes.length && (bytes.readUInt16BE(offset) & 0xfff6) === 0xfff0;
  return isFrameAt(0) && isFrameAt((bytes.readUInt32BE(3) >> 13) & 0x1fff);
}

/** Text in UTF-8, such as what a server says in the place of media; the last character may be cut off. */
function isText(bytes: Buffer): boolean {
  if (bytes.length === 0) return false;
  const text = new TextDecoder('utf-8').decode(bytes, { stream: true });
  return !/[^\P{Cc}\t\n\f\r]|\ufffd/u.test(text);
}
