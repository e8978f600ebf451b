import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { parseTagHeader, startsLikeTag, TAG_HEADER_SIZE_BYTES, tagSizeBytes } from './id3/tag-structure.ts';

/** Bytes, as Latin-1 characters, in which a file shows that it is text. */
const EXAMINED_BYTES = 16;
const BYTE_ORDER_MARK = /^(?:\xef\xbb\xbf|\xfe\xff|\xff\xfe(?:[\t-\r -~]\0){2})/;
/** First words of the lists that players follow, whatever stands behind them. */
const LIST_MARK = /^\s*(?:#EXTM3U|ffconcat|<\?xml|<MPD|<smil|<asx|\[playlist|\[reference)/i;
const CHARACTERS = /^[\t-\r -~]+$/;
/** Headers in letters of uncompressed pictures and sound, and of documents; and the padding of LAME, with which cut MP3 may begin. */
const OTHER_BEGINNING = /^(?:YUV4MPEG2 |Creative Voice F|%PDF-|LAME\d|UUUU)/;

/**
 * Tells whether bytes begin like text, which may be a list of other files to players: with a byte order mark, with the first word
 * of such a list, or with characters of ASCII alone.
 */
export function startsLikeText(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, EXAMINED_BYTES)).toString('latin1');
  if (BYTE_ORDER_MARK.test(start) || LIST_MARK.test(start)) return true;
  return CHARACTERS.test(start) && !OTHER_BEGINNING.test(start);
}

/** ID3v2 tags in a row that are passed over; what stands behind more of them is no media. */
const MAX_TAGS = 16;

/** Tells whether a file begins like text behind the ID3v2 tags that players pass over in front of any format. */
export async function beginsWithText(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  let offset = 0;
  for (let count = 0; count <= MAX_TAGS; count++) {
    const length = Math.min(TAG_HEADER_SIZE_BYTES + EXAMINED_BYTES, source.sizeBytes - offset);
    const head = await readRange(source, offset, length, signal);
    // Players pass over a footer in versions that have none, too.
    if (startsLikeText(head) || (count > 0 && startsLikeText(head.subarray(TAG_HEADER_SIZE_BYTES)))) return true;
    if (head.length < TAG_HEADER_SIZE_BYTES || !startsLikeTag(head)) return false;
    const header = parseTagHeader(head);
    if (header.bodySizeBytes === null) return false;
    offset += tagSizeBytes(header, header.bodySizeBytes);
    if (offset >= source.sizeBytes) return false;
  }
  return true;
}
