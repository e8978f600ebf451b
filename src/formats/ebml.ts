// EBML (RFC 8794), in which Matroska and WebM are written.

/** Longest element ID and size together, in bytes (RFC 8794 §17.1). */
export const MAX_HEADER_BYTES = 12;

/** An element of EBML (RFC 8794 §6). */
interface Element {
  readonly id: number;
  /** Start and end of its content; an unknown size extends to the end of its parent. */
  readonly start: number;
  readonly end: number;
  /** Bytes by which it exceeds its parent. */
  readonly missingBytes: number;
}

/** Yields the elements between two positions. */
export function* childrenOf(bytes: Buffer, start: number, end: number): Generator<Element> {
  for (let at = start; at < end; ) {
    const element = elementAt(bytes, at, end);
    if (element === null) return;
    yield element;
    at = element.end;
  }
}

/** Returns the element whose header stands at a position; null where there is none. */
export function elementAt(bytes: Buffer, at: number, limit: number): Element | null {
  const id = variableInteger(bytes, at, true);
  if (id === null) return null;
  const size = variableInteger(bytes, at + id.length, false);
  if (size === null) return null;
  const start = at + id.length + size.length;
  const isUnknown = size.value === 2 ** (7 * size.length) - 1;
  if (start > limit) return null;
  const end = isUnknown ? limit : start + size.value;
  return { id: id.value, start, end: Math.min(end, limit), missingBytes: Math.max(end - limit, 0) };
}

/** Returns a number of one to eight bytes, whose leading bits give its length (RFC 8794 §4); IDs keep them. */
export function variableInteger(
  bytes: Buffer,
  at: number,
  keepsMarker: boolean,
): { value: number; length: number } | null {
  const first = bytes[at];
  if (first === undefined || first === 0) return null;
  const length = Math.clz32(first) - 23;
  if (at + length > bytes.length) return null;
  let value = keepsMarker ? first : first & (0xff >> length);
  for (let index = 1; index < length; index += 1) value = value * 256 + (bytes[at + index] as number);
  return { value, length };
}

/** Returns an unsigned integer of up to eight bytes (RFC 8794 §7.2); absent ones are zero. */
export function unsignedOf(bytes: Buffer | undefined): number {
  let value = 0;
  for (const byte of bytes ?? []) value = value * 256 + byte;
  return value;
}
