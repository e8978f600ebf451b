import assert from 'node:assert';

/** Tags of the few DER types that certificates are made of (ITU-T X.690 §8). */
export const DER_TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One DER element; `contents` is a view, without tag and length. */
export interface DerElement {
  readonly tag: number;
  readonly contents: Buffer;
}

const FIRST_GENERALIZED_YEAR = 2050;
const LONG_LENGTH = 0x80;
/** Four bytes of length are 4 GiB: no certificate needs more. */
const MAX_LENGTH_BYTES = 4;

/** Writes one element: tag, length in the shortest form (X.690 §10.1), contents. */
export function derElement(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.of(tag), lengthBytes(body.length), body]);
}

export function derSequence(...elements: readonly Uint8Array[]): Buffer {
  return derElement(DER_TAG.sequence, ...elements);
}

/** An element under a context-specific, constructed tag, such as `[0] EXPLICIT`. */
export function derExplicit(number: number, ...elements: readonly Uint8Array[]): Buffer {
  return derElement(0xa0 | number, ...elements);
}

/** A non-negative integer from its big-endian bytes. */
export function derInteger(bytes: Uint8Array): Buffer {
  const significant = bytes.findIndex((byte) => byte !== 0);
  const shortest = significant === -1 ? Buffer.of(0) : bytes.subarray(significant);
  const sign = (shortest[0] ?? 0) >= 0x80 ? [Buffer.of(0)] : [];
  return derElement(DER_TAG.integer, ...sign, shortest);
}

/** A bit string whose last byte has `unusedBits` bits that do not count. */
export function derBitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return derElement(DER_TAG.bitString, Buffer.of(unusedBits), bytes);
}

/** `1.2.840.10045.4.3.2` as an object identifier (X.690 §8.19). */
export function derOid(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number);
  assert(first !== undefined && second !== undefined);
  return derElement(DER_TAG.objectIdentifier, Buffer.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** An instant, to the second: as UTCTime up to 2049, later as GeneralizedTime (RFC 5280 §4.1.2.5). */
export function derTime(instant: Date): Buffer {
  const digits = `${instant.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`;
  if (instant.getUTCFullYear() >= FIRST_GENERALIZED_YEAR)
    return derElement(DER_TAG.generalizedTime, Buffer.from(digits));
  return derElement(DER_TAG.utcTime, Buffer.from(digits.slice(2)));
}

/** Splits bytes into the elements that they are a run of; null where they are no well-formed run. */
export function derElements(bytes: Buffer): DerElement[] | null {
  const elements: DerElement[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const header = readHeader(bytes, offset);
    if (header === null) return null;
    const end = header.contentsOffset + header.length;
    if (end > bytes.length) return null;
    elements.push({ tag: header.tag, contents: bytes.subarray(header.contentsOffset, end) });
    offset = end;
  }
  return elements;
}

function readHeader(bytes: Buffer, offset: number): { tag: number; contentsOffset: number; length: number } | null {
  const tag = bytes[offset];
  const first = bytes[offset + 1];
  if (tag === undefined || first === undefined) return null;
  if (first < LONG_LENGTH) return { tag, contentsOffset: offset + 2, length: first };
  const count = first - LONG_LENGTH;
  if (count === 0 || count > MAX_LENGTH_BYTES || offset + 2 + count > bytes.length) return null;
  return { tag, contentsOffset: offset + 2 + count, length: bytes.readUIntBE(offset + 2, count) };
}

function lengthBytes(length: number): Buffer {
  if (length < LONG_LENGTH) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  assert(bytes.length <= MAX_LENGTH_BYTES);
  return Buffer.of(LONG_LENGTH | bytes.length, ...bytes);
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(128 | (rest % 128));
  return bytes;
}
