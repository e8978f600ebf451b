import { open } from 'node:fs/promises';

/** The longest signature below ends within so many bytes. */
const HEAD_SIZE_BYTES = 16;

/** Marks of what is no audio or video, but that the SDK reads manifests from; bytes as Latin-1 characters. */
const SIGNATURES: readonly {
  readonly mediaType: string;
  readonly offset: number;
  readonly marks: readonly string[];
}[] = [
  { mediaType: 'image/jpeg', offset: 0, marks: ['\xff\xd8\xff'] },
  { mediaType: 'image/png', offset: 0, marks: ['\x89PNG\r\n'] },
  { mediaType: 'image/gif', offset: 0, marks: ['GIF87a', 'GIF89a'] },
  { mediaType: 'image/webp', offset: 8, marks: ['WEBP'] },
  { mediaType: 'image/tiff', offset: 0, marks: ['II*\0', 'MM\0*'] },
  { mediaType: 'image/avif', offset: 4, marks: ['ftypavif', 'ftypavis'] },
  { mediaType: 'image/heic', offset: 4, marks: ['ftypheic', 'ftypheix'] },
  { mediaType: 'image/heif', offset: 4, marks: ['ftypmif1', 'ftypmsf1'] },
  { mediaType: 'image/svg+xml', offset: 0, marks: ['<svg'] },
  { mediaType: 'application/pdf', offset: 0, marks: ['%PDF-'] },
];

/**
 * The media type of a picture or document by its first bytes; null for anything else. The SDK reads an ingredient only
 * where its media type is right, and local files come without one.
 */
export async function stillMediaTypeOf(path: string): Promise<string | null> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_SIZE_BYTES), 0, HEAD_SIZE_BYTES, 0);
    const head = buffer.toString('latin1', 0, bytesRead);
    const found = SIGNATURES.find(({ offset, marks }) => marks.some((mark) => head.startsWith(mark, offset)));
    return found?.mediaType ?? null;
  } finally {
    await handle.close();
  }
}
