/** Makes and takes apart RIFF files byte by byte for tests, independently of the code under test. */

export interface Chunk {
  readonly id: string;
  readonly payload: Buffer;
}

export const FORMAT: Chunk = { id: 'fmt ', payload: Buffer.from('01000100401f0000401f000001000800', 'hex') };

export function chunk(id: string, payload: Uint8Array, { sizeBytes = payload.length, padded = true } = {}): Buffer {
  const header = Buffer.alloc(8);
  header.write(id, 'latin1');
  header.writeUInt32LE(sizeBytes, 4);
  return Buffer.concat([header, payload, Buffer.alloc(padded ? payload.length % 2 : 0)]);
}

export function wav(chunks: readonly Chunk[], { signature = 'RIFF', riffSizeBytes = -1, after = '' } = {}): Buffer {
  const body = Buffer.concat(chunks.map(({ id, payload }) => chunk(id, payload)));
  const header = Buffer.alloc(12);
  header.write(signature, 0, 'latin1');
  header.writeUInt32LE(riffSizeBytes === -1 ? body.length + 4 : riffSizeBytes, 4);
  header.write('WAVE', 8, 'latin1');
  return Buffer.concat([header, body, Buffer.from(after, 'latin1')]);
}

/** The chunks of a well-formed file and what stands behind its RIFF chunk; throws where it is not well-formed. */
export function takeApart(bytes: Buffer): { chunks: Chunk[]; after: string } {
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WAVE')
    throw new Error('no WAVE');
  const end = 8 + bytes.readUInt32LE(4);
  if (end > bytes.length || end % 2 === 1) throw new Error('wrong RIFF size');
  const chunks: Chunk[] = [];
  let offset = 12;
  while (offset < end) {
    const sizeBytes = bytes.readUInt32LE(offset + 4);
    if (offset + 8 + sizeBytes > end) throw new Error('a chunk is too long');
    chunks.push({
      id: bytes.toString('latin1', offset, offset + 4),
      payload: bytes.subarray(offset + 8, offset + 8 + sizeBytes),
    });
    offset += 8 + sizeBytes + (sizeBytes % 2);
  }
  return { chunks, after: bytes.toString('latin1', end) };
}
