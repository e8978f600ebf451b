import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import type { ByteRange } from './format-handler.ts';

// Pictures are not signed here. Their structure is read as far as the manifest, because a hash leaves out the bytes of that.

/** The manifest of a picture, as the official readers find it. */
export interface PictureManifest {
  /** Part of the file with the store; null where there is none. */
  readonly manifest: ByteRange | null;
  /** Parts of the file that a hash may leave out for it. */
  readonly elements: readonly ByteRange[];
  /** Returns the store, and what follows it, out of the bytes of its part. May change these. */
  unwrap(bytes: Buffer): Buffer;
}

/** Reads bytes of a file; null where they do not lie in it. */
type Read = (offset: number, length: number) => Promise<Buffer | null>;

const FINDERS: ReadonlyMap<string, (read: Read) => Promise<PictureManifest | null>> = new Map(
  Object.entries({
    'image/jpeg': findInJpeg,
    'image/png': findInPng,
    'image/gif': findInGif,
    'image/webp': findInWebp,
    'image/tiff': findInTiff,
    'image/jxl': findInJpegXl,
  }),
);

/** Segments, chunks, blocks or pages that are walked over on the way to a manifest. */
const MAX_STEPS = 1_000_000;

/**
 * Finds the manifest of a picture in JPEG, PNG, GIF, WebP, TIFF or JPEG XL (C2PA 2.2 §A.3). Returns null for other formats, and one without
 * parts where there is none.
 */
export async function findPictureManifest(
  source: ByteSource,
  mediaType: string | null,
  signal: AbortSignal,
): Promise<PictureManifest | null> {
  const find = FINDERS.get(mediaType ?? '');
  if (find === undefined) return null;
  const window = new ReadWindow(source, signal);
  const found = await find(async (offset, length) =>
    offset + length > source.sizeBytes ? null : await window.read(offset, length),
  );
  const isInside = found?.elements.every(({ offset, length }) => offset + length <= source.sizeBytes);
  return found !== null && isInside ? found : { manifest: null, elements: [], unwrap: (bytes) => bytes };
}

function manifestAt(offset: number, length: number, unwrap: PictureManifest['unwrap']): PictureManifest {
  return { manifest: { offset, length }, elements: [{ offset, length }], unwrap };
}

const APP11 = 0xeb;
/** Tells whether a segment has a length, and is none that coded data follows. */
const isHeaderMarker = (marker: number) => marker >= 0xc0 && !(marker >= 0xd0 && marker <= 0xda);
/** Marker and length of a segment, then common identifier, instance and sequence number of a box (ISO/IEC 18477-3 §B.1). */
const SEGMENT_HEADER_BYTES = 12;
/** These and the size and type of the box, which every segment of it repeats. */
const REPEATED_HEADER_BYTES = 20;
const JUMBF_TYPE_OFFSET = 28;

/** Finds adjoining segments of the box of C2PA with ascending numbers. */
async function findInJpeg(read: Read): Promise<PictureManifest | null> {
  let first: Buffer | null = null;
  let start = 0;
  let at = 2;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const { marker, end, head } = await segmentAt(read, at);
    if (first === null) {
      // A marker may follow bytes of 0xFF (ITU-T T.81 §B.1.1.2).
      if (marker === 0xff) at += 1;
      else if (!isHeaderMarker(marker)) return null;
      else {
        if (isManifestSegment(marker, head)) [first, start] = [head, at];
        at = end;
      }
      continue;
    }
    if (marker !== APP11 || !continues(first, head)) break;
    first = head;
    at = end;
  }
  return first === null ? null : manifestAt(start, at - start, unwrapJpeg);
}

async function segmentAt(
  read: Read,
  at: number,
): Promise<{ readonly marker: number; readonly end: number; readonly head: Buffer }> {
  const header = await read(at, 4);
  if (header === null || header.readUInt8(0) !== 0xff) return { marker: 0, end: at, head: Buffer.alloc(0) };
  const marker = header.readUInt8(1);
  const end = at + 2 + header.readUInt16BE(2);
  const head = await read(at, Math.min(Math.max(end - at, 4), JUMBF_TYPE_OFFSET + 4));
  return { marker, end, head: Buffer.from(head ?? header) };
}

function isManifestSegment(marker: number, head: Buffer): boolean {
  if (marker !== APP11 || head.length < JUMBF_TYPE_OFFSET + 4) return false;
  return head.toString('latin1', 4, 6) === 'JP' && head.toString('latin1', JUMBF_TYPE_OFFSET) === 'c2pa';
}

/** Tells whether a segment continues the box of the one before it. */
function continues(before: Buffer, head: Buffer): boolean {
  if (head.length < REPEATED_HEADER_BYTES) return false;
  const isSame = (from: number, to: number) => head.subarray(from, to).equals(before.subarray(from, to));
  const isNext = head.readUInt32BE(8) === before.readUInt32BE(8) + 1;
  return isSame(4, 8) && isNext && isSame(SEGMENT_HEADER_BYTES, REPEATED_HEADER_BYTES);
}

function unwrapJpeg(bytes: Buffer): Buffer {
  let length = 0;
  for (let at = 0; at < bytes.length; ) {
    const end = at + 2 + bytes.readUInt16BE(at + 2);
    const start = at + (at === 0 ? SEGMENT_HEADER_BYTES : REPEATED_HEADER_BYTES);
    bytes.copyWithin(length, start, end);
    length += end - start;
    at = end;
  }
  return bytes.subarray(0, length);
}

/** Finds the chunk, with its checksum. */
async function findInPng(read: Read): Promise<PictureManifest | null> {
  let at = 8;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const header = await read(at, 8);
    if (header === null) return null;
    const length = 12 + header.readUInt32BE(0);
    if (header.toString('latin1', 4) === 'caBX') return manifestAt(at, length, (bytes) => bytes.subarray(8, -4));
    at += length;
  }
  return null;
}

/** Finds the chunk, with its pad byte. */
async function findInWebp(read: Read): Promise<PictureManifest | null> {
  let at = 12;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const header = await read(at, 8);
    if (header === null) return null;
    const sizeBytes = header.readUInt32LE(4);
    const length = 8 + sizeBytes + (sizeBytes % 2);
    if (header.toString('latin1', 0, 4) === 'C2PA') return manifestAt(at, length, (bytes) => bytes.subarray(8));
    at += length;
  }
  return null;
}

const GIF_EXTENSION = 0x21;
/** Start of the application extension of C2PA (C2PA 2.2 §A.3.4), in hexadecimal. */
const GIF_START = Buffer.from('\x21\xff\x0bC2PA_GIF\x01\0\0', 'latin1');

/** Finds the application extension, which stands before the first image. */
async function findInGif(read: Read): Promise<PictureManifest | null> {
  const flags = (await read(10, 1))?.readUInt8() ?? 0;
  let start = 13 + ((flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7)));
  let at = start;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (at === start) {
      if ((await read(at, 1))?.readUInt8() !== GIF_EXTENSION) return null;
      at += 2;
    }
    const sizeBytes = (await read(at, 1))?.readUInt8();
    if (sizeBytes === undefined) return null;
    at += 1 + sizeBytes;
    if (sizeBytes > 0) continue;
    if ((await read(start, GIF_START.length))?.equals(GIF_START)) return manifestAt(start, at - start, unwrapGif);
    start = at;
  }
  return null;
}

function unwrapGif(bytes: Buffer): Buffer {
  let length = 0;
  for (let at = GIF_START.length; at < bytes.length; ) {
    const sizeBytes = bytes.readUInt8(at);
    bytes.copyWithin(length, at + 1, at + 1 + sizeBytes);
    length += sizeBytes;
    at += 1 + sizeBytes;
  }
  return bytes.subarray(0, length);
}

/** Bytes of a box up to the label of its description: two headers, a type and a toggle. */
const LABEL_OFFSET = 33;
const STORE_LABEL = 'c2pa\0';

/** Finds the box, which is the store itself. */
async function findInJpegXl(read: Read): Promise<PictureManifest | null> {
  let at = 0;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const header = await read(at, 8);
    const length = header?.readUInt32BE(0) ?? 0;
    // One without a size, or with one of 64 bits, holds no manifest that is read here.
    if (header === null || length < header.length) return null;
    const isJumbf = header.toString('latin1', 4) === 'jumb';
    const label = isJumbf ? await read(at + LABEL_OFFSET, STORE_LABEL.length) : null;
    if (label?.toString('latin1') === STORE_LABEL) return manifestAt(at, length, (bytes) => bytes);
    at += length;
  }
  return null;
}

const C2PA_TAG = 52545;
const TIFF_ENTRY_BYTES = 12;
/** As in the official readers. */
const MAX_TIFF_PAGES = 2000;

/** Finds the value of the tag in the last page, else in the first one. The number of its bytes may be left out as well. */
async function findInTiff(read: Read): Promise<PictureManifest | null> {
  const isBig = (await read(0, 2))?.toString('latin1') === 'MM';
  const numberIn = (bytes: Buffer, at: number, length: number) =>
    isBig ? bytes.readUIntBE(at, length) : bytes.readUIntLE(at, length);
  const numberAt = async (at: number, length: number) => {
    const bytes = await read(at, length);
    return bytes === null ? 0 : numberIn(bytes, 0, length);
  };
  const findInPage = async (page: number): Promise<PictureManifest | null> => {
    const entries = await read(page + 2, (await numberAt(page, 2)) * TIFF_ENTRY_BYTES);
    for (let at = 0; entries !== null && at < entries.length; at += TIFF_ENTRY_BYTES) {
      if (numberIn(entries, at, 2) !== C2PA_TAG) continue;
      const manifest = manifestAt(numberIn(entries, at + 8, 4), numberIn(entries, at + 4, 4), (bytes) => bytes);
      return { ...manifest, elements: [...manifest.elements, { offset: page + 2 + at + 4, length: 4 }] };
    }
    return null;
  };
  const pages = new Set<number>();
  for (let page = await numberAt(4, 4); page > 0; ) {
    if (pages.size === MAX_TIFF_PAGES || pages.has(page)) return null;
    pages.add(page);
    page = await numberAt(page + 2 + (await numberAt(page, 2)) * TIFF_ENTRY_BYTES, 4);
  }
  const [first, last] = [[...pages].at(0), [...pages].at(-1)];
  if (first === undefined || last === undefined) return null;
  return (await findInPage(last)) ?? (await findInPage(first));
}
