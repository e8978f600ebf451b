import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { ByteRange } from './format-handler.ts';

/** The element of C2PA in a picture, and what it holds: a manifest store, then zeros. */
export interface PictureManifest extends ByteRange {
  readonly store: Buffer;
}

/** A picture whose elements of C2PA are not one, or not one piece. */
export type ScatteredManifest = 'scattered';

/** Segments or chunks in front of the picture itself that are looked at; a manifest of 64 MiB takes 1,025 segments. */
const MAX_PARTS = 100_000;

/**
 * Finds the manifest of a JPEG or PNG file. Returns null for another container, a file without one, and a file that is cut off in front
 * of it: that is the official reader's to tell. Holds at most `maxBytes` of it; what is larger is scattered.
 */
export async function readPictureManifest(
  mediaType: string | null,
  source: ByteSource,
  maxBytes: number,
  signal: AbortSignal,
): Promise<PictureManifest | ScatteredManifest | null> {
  const find = mediaType === 'image/jpeg' ? jpegParts : mediaType === 'image/png' ? pngParts : null;
  if (find === null) return null;
  const parts: Part[] = [];
  for await (const part of find(source, signal)) parts.push(part);
  const [first] = parts;
  if (first === undefined) return null;
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const isOnePiece = parts.every((part, index) => {
    const before = parts[index - 1];
    return before === undefined || (before.offset + before.length === part.offset && before.number + 1 === part.number);
  });
  if (!isOnePiece || length > maxBytes) return 'scattered';
  const contents: Uint8Array[] = [];
  for (const { content } of parts) contents.push(await readRange(source, content.offset, content.length, signal));
  return { offset: first.offset, length, store: Buffer.concat(contents) };
}

/** A segment or chunk of C2PA. Those of one manifest are numbered without a gap. */
interface Part extends ByteRange {
  readonly number: number;
  readonly content: ByteRange;
}

/** Markers (ISO/IEC 10918-1, table B.1): start of scan, and application segment 11, which holds JUMBF (ISO/IEC 19566-5, annex D). */
const SOS = 0xda;
const APP11 = 0xeb;
/** A segment of JUMBF: marker, length, "JP", instance, number, and the header of the box, which each segment repeats. */
const JUMBF_HEAD_BYTES = 20;
const BOX_HEADER_BYTES = 8;
/** The content type of a manifest store behind the header of its description box. */
const TYPE_OFFSET = JUMBF_HEAD_BYTES + BOX_HEADER_BYTES;

/** Yields the segments of the manifest in front of the picture, and all others of their instance. */
async function* jpegParts(source: ByteSource, signal: AbortSignal): AsyncGenerator<Part> {
  let instance: number | null = null;
  let offset = 2;
  for (let count = 0; count < MAX_PARTS && offset + TYPE_OFFSET + 4 <= source.sizeBytes; count += 1) {
    const head = await readRange(source, offset, TYPE_OFFSET + 4, signal);
    const marker = head[1] ?? 0;
    if (head[0] !== 0xff || marker === SOS) return;
    // Fill bytes may stand in front of a marker (§B.1.1.2).
    if (marker === 0xff) {
      offset += 1;
      continue;
    }
    const length = 2 + head.readUInt16BE(2);
    if (offset + length > source.sizeBytes) return;
    const isJumbf = marker === APP11 && head.toString('latin1', 4, 6) === 'JP' && length >= JUMBF_HEAD_BYTES;
    if (isJumbf) {
      const own = head.readUInt16BE(6);
      const begins = head.toString('latin1', TYPE_OFFSET, TYPE_OFFSET + 4) === 'c2pa';
      if (begins || own === instance) {
        const at = begins && instance === null ? JUMBF_HEAD_BYTES - BOX_HEADER_BYTES : JUMBF_HEAD_BYTES;
        const content = { offset: offset + at, length: length - at };
        // A second store is not the next part of the first.
        const number = begins && instance !== null ? Number.NaN : head.readUInt32BE(8);
        instance ??= own;
        yield { offset, length, number, content };
      }
    }
    offset += length;
  }
}

const PNG_SIGNATURE_BYTES = 8;
/** Length, type and checksum of a chunk (PNG, §5.3). */
const CHUNK_FRAME_BYTES = 12;

/** Yields the chunks of manifests. Two are never numbered one after the other. */
async function* pngParts(source: ByteSource, signal: AbortSignal): AsyncGenerator<Part> {
  let offset = PNG_SIGNATURE_BYTES;
  for (let count = 0; count < MAX_PARTS && offset + CHUNK_FRAME_BYTES <= source.sizeBytes; count += 1) {
    const head = await readRange(source, offset, 8, signal);
    const contentBytes = head.readUInt32BE(0);
    const length = contentBytes + CHUNK_FRAME_BYTES;
    if (offset + length > source.sizeBytes) return;
    if (head.toString('latin1', 4, 8) === 'caBX')
      yield { offset, length, number: 0, content: { offset: offset + 8, length: contentBytes } };
    offset += length;
  }
}
