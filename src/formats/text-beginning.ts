import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { parseTagHeader, startsLikeTag, TAG_FLAGS, TAG_HEADER_SIZE_BYTES, tagSizeBytes } from './id3/tag-structure.ts';

/** Bytes, as Latin-1 characters, in which a file shows that it is text. */
const EXAMINED_BYTES = 16;
const BYTE_ORDER_MARK = /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe(?:[\t-\r -~]\0){2})/;
/** First words of the lists that players follow, and markup, whatever stands behind them. */
const LIST_MARK = /^\s*(?:#EXTM3U|ffconcat|<[?!a-z]|\[playlist|\[reference)/i;
const NO_CHARACTER = /[^\P{Cc}\t-\r]|\ufffd/u;
/** Headers in letters of uncompressed pictures and sound, and of documents; and the padding of LAME, with which cut MP3 may begin. */
const OTHER_BEGINNING = /^(?:YUV4MPEG2 |Creative Voice F|nut\/multimedia c|NIST_1A\n|%PDF-|LAME\d|UUUU)/;

/** A line by which ffmpeg takes what it is in for a session on a network (RFC 8866), whatever stands before it but a zero. */
const SESSION_LINE = /(?:^|\n\r?)c=IN IP/;
/** Bytes in which players look for text, up to its first zero; few have to be read of most media. */
const PROBED_BYTES = [4 * 1024, 1024 * 1024];

/**
 * Tells whether bytes begin like text, which may be a list of other files to players: with a byte order mark, with the first word
 * of such a list, with markup, or with characters alone. So do those that ffmpeg takes for a description of a session.
 */
export function startsLikeText(bytes: Uint8Array): boolean {
  const first = bytes.subarray(0, EXAMINED_BYTES);
  const start = Buffer.from(first).toString('latin1');
  if (BYTE_ORDER_MARK.test(start) || LIST_MARK.test(start)) return true;
  if (isText(first) && !OTHER_BEGINNING.test(start)) return true;
  const zero = bytes.indexOf(0);
  const text = zero === -1 ? bytes : bytes.subarray(0, zero);
  return SESSION_LINE.test(Buffer.from(text).toString('latin1'));
}

/** Tells whether bytes are UTF-8 text, such as a server's error page; the last character may be truncated. */
export function isText(bytes: Uint8Array): boolean {
  return bytes.length > 0 && !NO_CHARACTER.test(new TextDecoder('utf-8').decode(bytes, { stream: true }));
}

/** ID3v2 tags in a row that are passed over; what stands behind more of them is no media. */
const MAX_TAGS = 16;

/** Tells whether a file begins like text behind the ID3v2 tags that players pass over in front of any format. */
export async function beginsWithText(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  let offset = 0;
  let hasFooter = false;
  for (let count = 0; count <= MAX_TAGS; count++) {
    const sizeBytes = source.sizeBytes - offset;
    const head = await readRange(source, offset, Math.min(TAG_HEADER_SIZE_BYTES, sizeBytes), signal);
    const header = head.length === TAG_HEADER_SIZE_BYTES && startsLikeTag(head) ? parseTagHeader(head) : null;
    if (header === null || header.bodySizeBytes === null) {
      if (await isTextAt(source, offset, signal)) return true;
      // Players pass over a footer in versions that have none, too.
      return hasFooter && (await isTextAt(source, offset + TAG_HEADER_SIZE_BYTES, signal));
    }
    offset += tagSizeBytes(header, header.bodySizeBytes);
    hasFooter = (header.flags & TAG_FLAGS.footer) !== 0;
    if (offset >= source.sizeBytes) return false;
  }
  return true;
}

async function isTextAt(source: ByteSource, offset: number, signal: AbortSignal): Promise<boolean> {
  if (offset >= source.sizeBytes) return false;
  for (const probedBytes of PROBED_BYTES) {
    const length = Math.min(probedBytes, source.sizeBytes - offset);
    const bytes = await readRange(source, offset, length, signal);
    if (startsLikeText(bytes)) return true;
    if (bytes.includes(0) || length < probedBytes) return false;
  }
  return false;
}
