import { type ByteSource, ReadWindow, readRange } from '#bytes/byte-source.ts';

// Parts of a picture that a hash of parts lists (C2PA 2.2 §18.6): chunks, segments, boxes. Signers do not agree on all of them.

/** Yields offsets in ascending order, each of which may be the end of a part. */
type Boundaries = (source: ByteSource, signal: AbortSignal) => AsyncGenerator<number>;

const BOUNDARIES: ReadonlyMap<string, Boundaries> = new Map(
  Object.entries({
    'image/png': chunksOfPng,
    'image/jpeg': markersOfJpeg,
    'image/gif': blocksOfGif,
    'image/jxl': boxesOfJpegXl,
  }),
);

/** Returns offsets of a picture where its parts may end, all of those where they do; null for other formats. */
export function partBoundaries(
  source: ByteSource,
  mediaType: string,
  signal: AbortSignal,
): AsyncGenerator<number> | null {
  return BOUNDARIES.get(mediaType)?.(source, signal) ?? null;
}

async function* chunksOfPng(source: ByteSource, signal: AbortSignal): AsyncGenerator<number> {
  const window = new ReadWindow(source, signal);
  for (let at = 8; at <= source.sizeBytes; at += 12 + (await window.read(at, 4)).readUInt32BE(0)) {
    yield at;
    if (at + 4 > source.sizeBytes) return;
  }
}

/** Bytes that are searched at once. */
const PIECE_BYTES = 1024 * 1024;

const END_OF_IMAGE = 0xd9;

/** A segment begins with 0xFF, which occurs in coded data as well, and ends where the next one begins. The last one has two bytes. */
async function* markersOfJpeg(source: ByteSource, signal: AbortSignal): AsyncGenerator<number> {
  for (let start = 0; start < source.sizeBytes; start += PIECE_BYTES) {
    const piece = await readRange(source, start, Math.min(PIECE_BYTES + 1, source.sizeBytes - start), signal);
    for (let at = piece.indexOf(0xff); at !== -1; at = piece.indexOf(0xff, at + 1)) {
      yield start + at;
      if (piece[at + 1] === END_OF_IMAGE) yield start + at + 2;
    }
  }
  yield source.sizeBytes;
}

const GIF_EXTENSION = 0x21;
const GIF_IMAGE = 0x2c;

/** A table of colours is of the part before it. */
async function* blocksOfGif(source: ByteSource, signal: AbortSignal): AsyncGenerator<number> {
  const window = new ReadWindow(source, signal);
  const byteAt = async (at: number) => (at < source.sizeBytes ? (await window.read(at, 1)).readUInt8() : 0);
  const coloursIn = (flags: number) => ((flags & 0x80) === 0 ? 0 : 3 * (2 << (flags & 7)));
  yield 6;
  for (let at = 13 + coloursIn(await byteAt(10)); at <= source.sizeBytes; ) {
    yield at;
    const kind = await byteAt(at);
    if (kind === GIF_IMAGE) {
      at += 10 + coloursIn(await byteAt(at + 9));
      yield at;
    }
    if (kind !== GIF_IMAGE && kind !== GIF_EXTENSION) {
      yield at + 1;
      return;
    }
    // Sub-blocks follow the label of an extension, and the code size of an image.
    at += kind === GIF_IMAGE ? 1 : 2;
    for (let sizeBytes = await byteAt(at); sizeBytes > 0; sizeBytes = await byteAt(at)) at += 1 + sizeBytes;
    at += 1;
  }
}

async function* boxesOfJpegXl(source: ByteSource, signal: AbortSignal): AsyncGenerator<number> {
  const window = new ReadWindow(source, signal);
  for (let at = 0; at + 8 <= source.sizeBytes; ) {
    const sizeBytes = (await window.read(at, 4)).readUInt32BE(0);
    // A box without a size, or with one of 64 bits, is the last one that is looked at.
    at = sizeBytes < 8 ? source.sizeBytes : at + sizeBytes;
    yield at;
  }
}
