import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { MAX_TEXT_BYTES } from '../playlists/limits.ts';

const XML_BEGINNING = /^\ufeff?\s*</;
/**
 * Attributes by which subtitles name pictures and other files (TTML2 §9, SMPTE ST 2052-1), under any prefix. Searched in the text:
 * players read what XML parsers refuse.
 */
const ADDRESS = /[\s:](?:backgroundImage|src|href)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
/** An address of something in the text itself or in its fragment (ISO/IEC 14496-30 §5.6), or none. */
const IS_INSIDE = /^(?:#|data:|urn:mpeg:14496-30:subs:|$)/i;

/** Reads the bytes of a file that addresses are looked for in: the first 4 MiB. */
export function readStart(source: ByteSource, signal: AbortSignal): Promise<Buffer> {
  return readRange(source, 0, Math.min(source.sizeBytes, MAX_TEXT_BYTES), signal);
}

/** Returns the addresses outside itself that subtitles in XML name, each once; none for any other file. */
export function addressesIn(start: Buffer): readonly string[] {
  return XML_BEGINNING.test(start.toString()) ? addressesInFragment(start) : [];
}

/** Does the same for a fragment of subtitles in XML (`stpp`), which has boxes before them. */
export function addressesInFragment(start: Buffer): readonly string[] {
  const found = Array.from(start.toString().matchAll(ADDRESS), ([, first, second]) => (first ?? second ?? '').trim());
  return [...new Set(found)].filter((address) => !IS_INSIDE.test(address));
}
