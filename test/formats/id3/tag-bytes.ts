/** Makes ID3v2 tags byte by byte for tests, independently of the code under test. */

/** A frame of v2.4 (`plain`: with the wrong, not syncsafe, size that old iTunes wrote), v2.3 or v2.2. */
export function frame(
  version: 2 | 3 | 4,
  id: string,
  content: Uint8Array,
  { flags = 0, wrongSize = false } = {},
): Buffer {
  const size = content.length;
  if (version === 2) return Buffer.concat([Buffer.from(id), Buffer.from([size >> 16, size >> 8, size]), content]);
  const isSyncsafe = (version === 4) !== wrongSize;
  const sizeBytes = isSyncsafe ? syncsafe(size) : [size >> 24, size >> 16, size >> 8, size];
  return Buffer.concat([Buffer.from(id, 'latin1'), Buffer.from([...sizeBytes, flags >> 8, flags]), content]);
}

export function tag(version: number, body: Uint8Array, { flags = 0, sizeBytes = body.length } = {}): Buffer {
  return Buffer.concat([Buffer.from('ID3'), Buffer.from([version, 0, flags, ...syncsafe(sizeBytes)]), body]);
}

export function footer(tagBytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from('3DI'), tagBytes.subarray(3, 10)]);
}

export function text(value: string): Buffer {
  return Buffer.from(`\0${value}`, 'latin1');
}

/** A manifest store frame's content, under the media type of today or of before. */
export function manifestObject(content: string, mediaType = 'application/c2pa'): Buffer {
  return Buffer.from(`\0${mediaType}\0c2pa\0c2pa manifest store\0${content}`, 'latin1');
}

/** A front cover's content, the picture itself being `sizeBytes` of nothing. */
export function picture(sizeBytes: number): Buffer {
  return Buffer.concat([Buffer.from('\0image/png\0\x03\0', 'latin1'), Buffer.alloc(sizeBytes, 1)]);
}

/** Unsynchronises bytes: inserts a zero behind every 0xFF. */
export function unsynchronised(bytes: Uint8Array): Buffer {
  return Buffer.from([...bytes].flatMap((byte) => (byte === 0xff ? [byte, 0] : [byte])));
}

export function syncsafe(value: number): number[] {
  return [21, 14, 7, 0].map((shift) => (value >> shift) & 0x7f);
}

/** Ids and contents of the frames of well-formed v2.3 or v2.4 tags in a row, each read up to its padding. */
export function frames(tags: Buffer): [string, Buffer][] {
  const found: [string, Buffer][] = [];
  let offset = 0;
  while (offset < tags.length) {
    if (tags.toString('latin1', offset, offset + 3) !== 'ID3') throw new Error('no tag');
    const sizeBytes = 10 + tags.subarray(offset + 6, offset + 10).reduce((size, byte) => size * 128 + byte, 0);
    found.push(...framesOfTag(tags.subarray(offset, offset + sizeBytes)));
    offset += sizeBytes;
  }
  return found;
}

function framesOfTag(tagBytes: Buffer): [string, Buffer][] {
  const isV4 = tagBytes[3] === 4;
  const found: [string, Buffer][] = [];
  let offset = 10;
  while (offset < tagBytes.length && tagBytes[offset] !== 0) {
    const sizeBytes = isV4
      ? [...tagBytes.subarray(offset + 4, offset + 8)].reduce((size, byte) => size * 128 + byte, 0)
      : tagBytes.readUInt32BE(offset + 4);
    const content = tagBytes.subarray(offset + 10, offset + 10 + sizeBytes);
    found.push([tagBytes.toString('latin1', offset, offset + 4), content]);
    offset += 10 + sizeBytes;
  }
  return found;
}

/** Silent frames of MPEG-1 layer III, 128 kbit/s, 44.1 kHz, without padding: 417 bytes each. */
export function mpegFrames(count: number): Buffer {
  const one = Buffer.alloc(417);
  one.set([0xff, 0xfb, 0x90, 0x64]);
  return Buffer.concat(Array(count).fill(one));
}
