import { isText, startsLikeText } from './text-beginning.ts';

/** Container that cannot carry a manifest here. */
interface UnsupportedContainer {
  /** Name in messages, such as `Ogg`. */
  readonly name: string;
  readonly mediaType: string;
  /** First bytes in hexadecimal; `.` stands for any four bits. */
  readonly signature: RegExp;
  /** Extensions of its file names, lower case without dot. */
  readonly extensions: string;
}

const CONTAINERS: readonly UnsupportedContainer[] = [
  { name: 'Ogg', mediaType: 'application/ogg', signature: /^4f676753/, extensions: 'ogg oga ogv ogm opus spx' },
  { name: 'AIFF', mediaType: 'audio/aiff', signature: /^464f524d/, extensions: 'aif aiff aifc' },
  { name: 'CAF', mediaType: 'audio/x-caf', signature: /^63616666/, extensions: 'caf' },
  { name: 'big-endian WAV (RIFX)', mediaType: 'audio/wav', signature: /^52494658/, extensions: '' },
  { name: 'Wave64', mediaType: 'audio/x-w64', signature: /^726966662e91cf11/, extensions: 'w64' },
  { name: 'AU', mediaType: 'audio/basic', signature: /^2e736e64/, extensions: 'au snd' },
  { name: 'Matroska or WebM', mediaType: 'video/matroska', signature: /^1a45dfa3/, extensions: 'webm mkv mka' },
  { name: 'Flash Video', mediaType: 'video/x-flv', signature: /^464c5601/, extensions: 'flv' },
  { name: 'Windows Media', mediaType: 'video/x-ms-asf', signature: /^3026b275/, extensions: 'wmv wma asf' },
  { name: 'RealMedia', mediaType: 'application/vnd.rn-realmedia', signature: /^2e524d46/, extensions: 'rm rmvb ra' },
  { name: 'MXF', mediaType: 'application/mxf', signature: /^060e2b34/, extensions: 'mxf' },
  { name: 'an MPEG program stream', mediaType: 'video/mpeg', signature: /^000001ba/, extensions: 'mpg mpeg mpe vob' },
];

/**
 * Further extensions of media that cannot carry a manifest: streams without a container, and containers without
 * a signature above.
 */
const OTHER_EXTENSIONS =
  'ts mts m2ts m2t m1v m2v mp2 mpa aac ac3 eac3 ec3 dts thd amr awb ape wv tta tak mpc dsf dff rf64 bw64 mid midi';

/** Name extensions of media that cannot carry a manifest. */
export const UNSIGNABLE_EXTENSIONS: ReadonlySet<string> = new Set(
  [...CONTAINERS.map(({ extensions }) => extensions), OTHER_EXTENSIONS]
    .flatMap((line) => line.split(' '))
    .filter(Boolean),
);

/** Number of bytes that are examined for text. */
const EXAMINED_TEXT_BYTES = 1024;
const TS_SYNC = 0x47;
const ADTS_HEADER_SIZE_BYTES = 7;

/**
 * Tells whether a file starts with the signature of an unsupported container, which may hold media of a supported kind.
 */
export function isUnsupportedContainer(head: Uint8Array): boolean {
  return containerOf(head) !== undefined;
}

/** Returns the likely kind of an unsupported file for messages, or null where its first bytes do not tell. */
export function describeContainer(head: Uint8Array): string | null {
  const name = containerOf(head)?.name;
  if (name !== undefined) return name;
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length);
  if (isTransportStream(bytes)) return 'an MPEG transport stream';
  if (isAdts(bytes)) return 'AAC without a container (ADTS)';
  // The sync code of a frame with its reserved bit (RFC 9639, §9.1).
  if (bytes.length >= 2 && (bytes.readUInt16BE(0) & 0xfffe) === 0xfff8) return 'FLAC without its beginning';
  return startsLikeText(bytes) || isText(bytes.subarray(0, EXAMINED_TEXT_BYTES)) ? 'text' : null;
}

/** Returns the media type of an unsupported file by its first bytes, or null where they do not tell. */
export function unsupportedMediaType(head: Uint8Array): string | null {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length);
  const mediaType = containerOf(head)?.mediaType;
  if (mediaType === 'video/matroska' && isWebm(bytes)) return 'video/webm';
  if (mediaType !== undefined) return mediaType;
  if (isTransportStream(bytes)) return 'video/mp2t';
  return isAdts(bytes) ? 'audio/aac' : null;
}

function containerOf(head: Uint8Array): UnsupportedContainer | undefined {
  const start = Buffer.from(head.subarray(0, 8)).toString('hex');
  return CONTAINERS.find(({ signature }) => signature.test(start));
}

/** The element DocType with the value "webm" (RFC 8794 §11.2.8); it stands in the header, at the start of the file. */
const WEBM_DOC_TYPE = Buffer.from('4282847765626d', 'hex');
const MAX_EBML_HEADER_BYTES = 128;

function isWebm(bytes: Buffer): boolean {
  return bytes.subarray(0, MAX_EBML_HEADER_BYTES).includes(WEBM_DOC_TYPE);
}

/** Packets of a transport stream; those of M2TS have a time stamp of four bytes before them. */
const TS_PACKETS = [
  { sizeBytes: 188, syncAt: 0 },
  { sizeBytes: 192, syncAt: 4 },
];

function isTransportStream(bytes: Buffer): boolean {
  return TS_PACKETS.some(({ sizeBytes, syncAt }) =>
    [0, 1, 2].every((index) => bytes[syncAt + index * sizeBytes] === TS_SYNC),
  );
}

/** Tells whether bytes start with two consecutive ADTS frames (ISO/IEC 14496-3 §1.A.3.2). */
function isAdts(bytes: Buffer): boolean {
  const isFrameAt = (offset: number): boolean =>
    offset + ADTS_HEADER_SIZE_BYTES <= bytes.length && (bytes.readUInt16BE(offset) & 0xfff6) === 0xfff0;
  return isFrameAt(0) && isFrameAt((bytes.readUInt32BE(3) >> 13) & 0x1fff);
}
