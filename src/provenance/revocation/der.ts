// Reads and writes DER (X.690), as far as OCSP needs it. `@peculiar/x509` knows no OCSP, and takes 0.1 s and 6 MB to load.

/** Tags of elements. */
export const TAG = {
  octets: 0x04,
  null: 0x05,
  oid: 0x06,
  enumerated: 0x0a,
  sequence: 0x30,
} as const;

/** An element: its tag, its bytes with the header, and its contents. */
export interface DerElement {
  readonly tag: number;
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** Returns the elements that bytes consist of. Throws an Error where they are none, or are cut off. */
export function readElements(bytes: Uint8Array): DerElement[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const elements: DerElement[] = [];
  for (let offset = 0; offset < buffer.length; ) {
    const element = readElement(buffer.subarray(offset));
    elements.push(element);
    offset += element.whole.length;
  }
  return elements;
}

/** Returns the one element that bytes consist of. Throws an Error where they are none, or another. */
export function onlyElement(bytes: Uint8Array, tag: number): DerElement {
  const element = readElement(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (element.tag !== tag || element.whole.length < bytes.length) throw new Error('an element is missing');
  return element;
}

function readElement(bytes: Buffer): DerElement {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || first === 0x80 || first > 0x84) throw new Error('no DER');
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = 2 + lengthBytes;
  const length = bytes.subarray(2, start).reduce((sum, byte) => sum * 256 + byte, 0);
  const end = start + (lengthBytes === 0 ? first : length);
  if (end > bytes.length) throw new Error('DER that is cut off');
  return { tag, whole: bytes.subarray(0, end), content: bytes.subarray(start, end) };
}

/** Encodes an element. */
export function encodeElement(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const digits = content.length.toString(16);
  const size = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  const head = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 + size.length, ...size];
  return Buffer.concat([Buffer.from(head), content]);
}

/** Returns a time (GeneralizedTime as RFC 5280 §4.1.2.5.2 has it). Throws an Error where it is none. */
export function timeOf({ content }: DerElement): Date {
  const [, ...fields] = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(content.toString('latin1')) ?? [];
  const [year, month, day, hour, minute, second] = fields;
  const time = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(time.getTime())) throw new Error('a time cannot be read');
  return time;
}
