import { open } from 'node:fs/promises';

/** The number of bytes that are looked at: SVG has comments before its first element. */
const HEAD_SIZE_BYTES = 16 * 1024;

/** Signatures of formats without audio or video from which the SDK reads manifests, as Latin-1 characters. */
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
  { mediaType: 'image/jxl', offset: 0, marks: ['\0\0\0\x0cJXL \r\n\x87\n'] },
  { mediaType: 'application/pdf', offset: 0, marks: ['%PDF-'] },
];

/**
 * Returns the media type of a picture or document by its first bytes; null for anything else. The SDK needs the right media
 * type to read an ingredient, and local files come without one.
 */
export async function stillMediaTypeOf(path: string): Promise<string | null> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_SIZE_BYTES), 0, HEAD_SIZE_BYTES, 0);
    return stillMediaType(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}

/** Does the same for the first bytes of a file. */
export function stillMediaType(bytes: Buffer): string | null {
  const head = bytes.toString('latin1', 0, HEAD_SIZE_BYTES);
  const found = SIGNATURES.find(({ offset, marks }) => marks.some((mark) => head.startsWith(mark, offset)));
  return found?.mediaType ?? (startsLikeSvg(head) ? 'image/svg+xml' : null);
}

/** A part of XML before its first element: a byte order mark in Latin-1, white space, an instruction, a comment or a document type. */
const BEFORE_ELEMENT = /\xef\xbb\xbf|\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>[]*(?:\[[^\]]*\]\s*)?>/sy;

function startsLikeSvg(head: string): boolean {
  let start = 0;
  for (;;) {
    BEFORE_ELEMENT.lastIndex = start;
    if (!BEFORE_ELEMENT.test(head)) return /^<svg[\s/>]/.test(head.slice(start, start + 5));
    start = BEFORE_ELEMENT.lastIndex;
  }
}
