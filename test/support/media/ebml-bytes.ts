/** Returns an element of EBML with a size of eight bytes (RFC 8794). */
export function ebml(id: string, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE((1n << 56n) | BigInt(content.length));
  return Buffer.concat([Buffer.from(id, 'hex'), size, content]);
}

/** A chapter that plays a segment of another file, in the elements around it. */
export const LINKED_CHAPTERS = ebml('1043a770', ebml('45b9', ebml('b6', ebml('6e67', Buffer.alloc(16, 1)))));

/** A Matroska file with one segment. */
export function matroska(...inSegment: readonly Uint8Array[]): Buffer {
  return Buffer.concat([ebml('1a45dfa3', ebml('4282', Buffer.from('matroska'))), ebml('18538067', ...inSegment)]);
}
