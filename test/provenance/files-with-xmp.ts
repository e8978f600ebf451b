import { smallWav } from '../support/manifests/sign-wav.ts';

/** A file that carries an XMP packet, and a name and media type for it. */
export interface FileWithXmp {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Buffer;
}

/** The XMP packet that Adobe's tools write for a manifest in the cloud. */
export function xmpNaming(url: string): string {
  return (
    '<?xpacket begin="\uFEFF" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">' +
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">' +
    '<rdf:Description rdf:about="" xmlns:dcterms="http://purl.org/dc/terms/" ' +
    `dcterms:provenance="${url}"></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
  );
}

/** Small files with an XMP packet at the place where the SDK looks for it in each format. */
export function filesWithXmp(xmp: string): FileWithXmp[] {
  const packet = Buffer.from(xmp);
  return [
    { name: 'remote.wav', mediaType: 'audio/wav', bytes: wavWith(packet) },
    { name: 'remote.mp4', mediaType: 'video/mp4', bytes: mp4With(packet) },
    { name: 'remote.mp3', mediaType: 'audio/mpeg', bytes: mp3With(packet) },
    { name: 'remote.jpg', mediaType: 'image/jpeg', bytes: jpegWith(packet) },
  ];
}

function wavWith(packet: Buffer): Buffer {
  const padded = packet.length % 2 === 0 ? packet : Buffer.concat([packet, Buffer.from(' ')]);
  const header = Buffer.alloc(8);
  header.write('XMP ', 'latin1');
  header.writeUInt32LE(padded.length, 4);
  const wav = Buffer.concat([smallWav(), header, padded]);
  wav.writeUInt32LE(wav.length - 8, 4);
  return wav;
}

function mp4With(packet: Buffer): Buffer {
  const xmpId = Buffer.from('BE7ACFCB97A942E89C71999491E3AFAC', 'hex');
  const brands = Buffer.from('isom\0\0\0\0isom', 'latin1');
  return Buffer.concat([box('ftyp', brands), box('uuid', xmpId, packet), box('moov'), box('mdat', Buffer.alloc(64))]);
}

function box(type: string, ...contents: readonly Buffer[]): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(8), ...contents]);
  bytes.writeUInt32BE(bytes.length);
  bytes.write(type, 4, 'latin1');
  return bytes;
}

function mp3With(packet: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from('XMP\0'), packet]);
  const frame = Buffer.alloc(10);
  frame.write('PRIV', 'latin1');
  frame.writeUInt32BE(body.length, 4);
  const sizeBytes = frame.length + body.length;
  const tag = Buffer.from([
    0x49,
    0x44,
    0x33,
    3,
    0,
    0,
    0,
    (sizeBytes >> 14) & 127,
    (sizeBytes >> 7) & 127,
    sizeBytes & 127,
  ]);
  const audio = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0]), Buffer.alloc(413)]);
  return Buffer.concat([tag, frame, body, audio]);
}

function jpegWith(packet: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from('http://ns.adobe.com/xap/1.0/\0'), packet]);
  const marker = Buffer.from([0xff, 0xe1, 0, 0]);
  marker.writeUInt16BE(body.length + 2, 2);
  return Buffer.concat([Buffer.from([0xff, 0xd8]), marker, body, Buffer.from([0xff, 0xda, 0, 2, 0, 0xff, 0xd9])]);
}
