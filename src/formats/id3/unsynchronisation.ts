/**
 * The unsynchronisation scheme of ID3v2 (v2.4.0 structure, §6.1): a zero byte is put behind every 0xFF, so that no byte
 * pair looks like the start of an MPEG frame. Sizes of tags avoid the pair by using 7 bits of each byte ("syncsafe").
 */

/** Reads a syncsafe integer of 4 bytes, or null where a byte has its top bit set and it is none. */
export function readSyncsafe(bytes: Uint8Array, offset: number): number | null {
  let value = 0;
  for (const byte of bytes.subarray(offset, offset + 4)) {
    if (byte >= 0x80) return null;
    value = value * 0x80 + byte;
  }
  return value;
}

/** The largest value of a syncsafe integer of 4 bytes: 256 MiB less one. */
export const MAX_SYNCSAFE = 0x0fff_ffff;

/** Writes a syncsafe integer of 4 bytes. */
export function writeSyncsafe(value: number, bytes: Uint8Array, offset: number): void {
  for (let index = 0; index < 4; index++) bytes[offset + index] = (value >> (7 * (3 - index))) & 0x7f;
}

/** The bytes as they were before unsynchronisation. */
export function undoUnsynchronisation(bytes: Uint8Array): Buffer {
  const undone = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let afterFf = false;
  for (const byte of bytes) {
    const isStuffing = afterFf && byte === 0;
    if (!isStuffing) undone[length++] = byte;
    afterFf = byte === 0xff;
  }
  return undone.subarray(0, length);
}

/** Where in unsynchronised bytes the byte stands that is number `undoneOffset` once the scheme is undone. */
export function unsynchronisedOffset(bytes: Uint8Array, undoneOffset: number): number {
  let undoneCount = 0;
  let afterFf = false;
  for (const [offset, byte] of bytes.entries()) {
    const isStuffing = afterFf && byte === 0;
    if (!isStuffing && undoneCount++ === undoneOffset) return offset;
    afterFf = byte === 0xff;
  }
  return bytes.length;
}
